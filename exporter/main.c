#include <stdio.h>
#include <string.h>

#include "collectors/collectors.h"
#include "exporter/serve.h"

int main(int argc, char **argv) {
    if (argc >= 2 && strcmp(argv[1], "serve") == 0) {
        return serve_main(collectors_all, argc - 1, argv + 1);
    }
    fprintf(stderr, "usage: waap serve [flags]\n");
    return 2;
}
