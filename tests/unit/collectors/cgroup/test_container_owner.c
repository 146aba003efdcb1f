#include "collectors/cgroup/container_path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <unity.h>

#include "exporter/core/cleanup.h"

#define A "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

enum { NOBODY = 65534 };

static char root[] = "/tmp/test_container_owner.XXXXXX";

static void make(const char *directory, uid_t owner, mode_t mode) {
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", root, directory);
    TEST_ASSERT_TRUE(mkdir(path, 0755) == 0 || errno == EEXIST);
    TEST_ASSERT_EQUAL_INT(0, chmod(path, mode));
    TEST_ASSERT_EQUAL_INT(0, chown(path, owner, owner));
}

static uid_t owner_in(const char *text) {
    struct container_path path;
    TEST_ASSERT_TRUE_MESSAGE(container_id_parse(text, &path), text);
    return container_owner_in(root, text, &path);
}

static void test_unified(void) {
    make("system.slice", 0, 0755);
    make("system.slice/mine.service", 0, 0755);
    make("system.slice/mine.service/theirs", NOBODY, 0755);
    make("system.slice/mine.service/theirs/below", 0, 0755);
    make("system.slice/open.service", 0, 0775);
    static const struct {
        const char *text;
        uid_t owner;
    } rows[] = {
        {"0::/system.slice/docker-" A ".scope\n", 0},
        {"0::/absent.slice/docker-" A ".scope\n", 0},
        {"0::/system.slice/mine.service/docker-" A ".scope", 0},
        {"0::/system.slice/mine.service/docker-" A ".scope/theirs/x\n", 0},
        {"0::/system.slice/mine.service/theirs/docker-" A ".scope\n", NOBODY},
        {"0::/system.slice/mine.service/theirs/below/docker-" A ".scope\n", NOBODY},
        {"9:cpu:/\n0::/system.slice/mine.service/theirs/docker-" A ".scope\n", NOBODY},
        {"0::/system.slice/open.service/docker-" A ".scope\n", CONTAINER_OWNER_UNKNOWN},
        {"0::/system.slice/absent.service/docker-" A ".scope\n", CONTAINER_OWNER_UNKNOWN},
        {"0::/../x.service/docker-" A ".scope\n", CONTAINER_OWNER_UNKNOWN},
        {"0::/system.slice/mine.service/../mine.service/docker-" A "\n", CONTAINER_OWNER_UNKNOWN},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        TEST_ASSERT_EQUAL_UINT_MESSAGE(rows[i].owner, owner_in(rows[i].text), rows[i].text);
    }
}

static void test_hierarchies_of_v1(void) {
    make("unified", 0, 0755);
    make("unified/a.service", NOBODY, 0755);
    make("systemd", 0, 0755);
    make("systemd/a.service", NOBODY - 1, 0755);
    make("cpu,cpuacct", 0, 0755);
    make("cpu,cpuacct/a.service", 0, 0755);
    TEST_ASSERT_EQUAL_UINT(NOBODY, owner_in("0::/a.service/docker-" A ".scope\n"));
    TEST_ASSERT_EQUAL_UINT(NOBODY - 1, owner_in("1:name=systemd:/a.service/docker-" A ".scope\n"));
    TEST_ASSERT_EQUAL_UINT(0, owner_in("4:cpu,cpuacct:/a.service/docker-" A ".scope\n"));
    TEST_ASSERT_EQUAL_UINT(CONTAINER_OWNER_UNKNOWN,
                           owner_in("4:memory:/a.service/docker-" A ".scope\n"));
}

void suiteSetUp(void) {
    enum { MESON_SKIP = 77 };
    if (geteuid() != 0) {
        puts("SKIP: only root can give directories away");
        exit(MESON_SKIP);
    }
    if (mkdtemp(root) == NULL) {
        perror(root);
        exit(1);
    }
}

int suiteTearDown(int failures) {
    char command[64];
    snprintf(command, sizeof(command), "rm -r '%s'", root);
    return failures + (system(command) != 0);
}
