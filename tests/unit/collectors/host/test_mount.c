#include "collectors/host/parse.h"

#include <errno.h>
#include <string.h>
#include <unity.h>

#include "exporter/core/cleanup.h"

static void test_parse(void) {
    static const struct {
        const char *line;
        const char *key; /* NULL: not understood */
        bool read_only;
    } cases[] = {
        {"/dev/vda / ext4 rw,relatime 0 0\nx", "/dev/vda / ext4", false},
        {"tmpfs /ro tmpfs ro 0 0", "tmpfs /ro tmpfs", true},
        {"tmpfs /ro tmpfs nosuid,ro,size=4k 0 0", "tmpfs /ro tmpfs", true},
        {"a b c rw,errors=remount-ro,roots", "a b c", false},
        {"nas:/x\\040y /mnt/x nfs4 rw 0 0", "nas:/x\\040y /mnt/x nfs4", false},
        {"/dev/vda / ext4", NULL, false},
        {"/dev/vda", NULL, false},
        {"", NULL, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct host_mount_line line;
        int r = host_mount_parse(cases[i].line, &line);
        TEST_ASSERT_EQUAL_INT_MESSAGE(cases[i].key != NULL ? 0 : -EINVAL, r, cases[i].line);
        if (r == 0) {
            TEST_ASSERT_TRUE_MESSAGE(scan_word_equal(line.key, cases[i].key), cases[i].line);
            TEST_ASSERT_EQUAL_MESSAGE(cases[i].read_only, line.read_only, cases[i].line);
        }
    }
}

static void test_unescape(void) {
    static const struct {
        const char *escaped;
        const char *plain;
    } cases[] = {
        {"/", "/"},
        {"/media/my\\040disk", "/media/my disk"},
        {"/a\\011b\\012c\\134d\\043", "/a\tb\nc\\d#"},
        {"\\040\\040", "  "},
        {"/caf\xe9\\377", "/caf\xe9\xff"},
        {"/a\\04", "/a\\04"},
        {"/a\\048", "/a\\048"},
        {"/a\\777", "/a\\777"},
        {"/a\\", "/a\\"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct scan_word word = {.text = cases[i].escaped, .len = strlen(cases[i].escaped)};
        char *plain CLEANUP_FREE = host_mount_unescape(word);
        TEST_ASSERT_EQUAL_STRING(cases[i].plain, plain);
    }
}

static void test_strip(void) {
    static const struct {
        const char *path;
        const char *rootfs;
        const char *stripped;
    } cases[] = {
        {"/host/boot", "/host", "/boot"},
        {"/host", "/host", "/"},
        {"/host/boot", "/host/", "/boot"},
        {"/hostel", "/host", "/hostel"},
        {"/boot", "/host", "/boot"},
        {"/boot", "/", "/boot"},
        {"/", "/", "/"},
        {"/boot", "", "/boot"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        TEST_ASSERT_EQUAL_STRING(cases[i].stripped,
                                 host_mount_strip(cases[i].path, cases[i].rootfs));
    }
}
