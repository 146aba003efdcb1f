"""Certificates and passwords that tests hand out."""

import pathlib
import subprocess

# Both of "secret". A check takes 66 ms or so at cost 10, 1 ms at cost 4.
SECRET = "$2b$10$abcdefghijklmnopqrstuuqflPDzB6gcMhKa1rZqKiun2YGL5sa2u"
QUICK_SECRET = "$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW"


def openssl(*arguments, **options):
    done = subprocess.run(["openssl", *map(str, arguments)], capture_output=True, **options)
    assert done.returncode == 0, done.stderr.decode()


class Authority:
    """Signs certificates: <name>.crt and <name>.key in its directory."""

    def __init__(self, directory, name):
        self.directory = pathlib.Path(directory)
        self.name = name
        self.crt = self.directory / f"{name}.crt"
        self.key = self.directory / f"{name}.key"
        curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
        openssl(
            *("req", "-x509", *curve, "-subj", f"/CN={name}", "-days", 1),
            *("-keyout", self.key, "-out", self.crt),
        )

    def sign(self, name, san="IP:127.0.0.1"):
        crt, key = self.directory / f"{name}.crt", self.directory / f"{name}.key"
        request = self.directory / f"{name}.csr"
        extensions = self.directory / f"{name}.ext"
        extensions.write_text(f"subjectAltName={san}\n")
        openssl(
            *("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}"),
            *("-keyout", key, "-out", request),
        )
        openssl(
            *("x509", "-req", "-in", request, "-CA", self.crt, "-CAkey", self.key),
            *("-CAcreateserial", "-days", 1, "-extfile", extensions, "-out", crt),
        )
        return crt, key
