#include "collectors/container/cri.h"

#include <errno.h>
#include <stdlib.h>
#include <unity.h>

#include "exporter/core/cleanup.h"
#include "tests/unit/collectors/container/cri_text.h"

static const char *const wanted[] = {"job", "own", NULL};
static struct container_infos infos;
static struct buf text;

void setUp(void) {
    infos = (struct container_infos){0};
    text = (struct buf){0};
}

void tearDown(void) {
    container_infos_finish(&infos);
    buf_finish(&text);
}

static int read_pods(void) {
    return cri_message_pods(buf_str(&text), text.len, wanted, &infos);
}

static int read_containers(void) {
    return cri_message_containers(buf_str(&text), text.len, wanted, &infos);
}

static void test_pods(void) {
    cri_add_pod(&text, "s1", "cam", "cars");
    cri_add_pod(&text, "s2", "mic", "birds");
    TEST_ASSERT_EQUAL_INT(0, read_pods());
    TEST_ASSERT_EQUAL_UINT64(2, infos.n_rows);
    const struct container_info *info = &infos.rows[1];
    TEST_ASSERT_EQUAL_STRING("s2", info->id);
    TEST_ASSERT_EQUAL_STRING("mic", info->pod);
    TEST_ASSERT_EQUAL_STRING("ses", info->namespace);
    TEST_ASSERT_TRUE(info->sandbox);
    TEST_ASSERT_EQUAL_UINT64(1, info->n_labels);
    TEST_ASSERT_EQUAL_STRING("birds", info->labels[0].value);
}

static void test_containers(void) {
    cri_add_container(&text, "c1", "s1", "app");
    TEST_ASSERT_EQUAL_INT(0, read_containers());
    TEST_ASSERT_EQUAL_UINT64(1, infos.n_rows);
    const struct container_info *info = &infos.rows[0];
    TEST_ASSERT_EQUAL_STRING("c1", info->id);
    TEST_ASSERT_EQUAL_STRING("s1", infos.rows[0].sandbox_id);
    TEST_ASSERT_EQUAL_STRING("app", info->container);
    TEST_ASSERT_EQUAL_STRING("waggle/app:1", info->image);
    TEST_ASSERT_FALSE(info->sandbox);
}

/* A row of ListContainers with the given fields behind its id. */
static void add_row(const struct buf *fields) {
    struct buf row CLEANUP_BUF = {0};
    cri_add_text(&row, 1, "c1");
    buf_add(&row, buf_str(fields), fields->len);
    cri_add_message(&text, 1, &row);
}

static void test_images(void) {
    static const struct {
        const char *name, *specified, *ref, *expected;
    } rows[] = {
        {"a:1", NULL, "r", "a:1"},
        {"sha256:0", "a:1", "r", "a:1"},
        {"sha256:0", NULL, "docker.io/a@sha256:0", "docker.io/a@sha256:0"},
        {"sha256:0", NULL, "sha256:0", "sha256:0"},
        {"sha256:0", NULL, NULL, NULL},
        {NULL, NULL, NULL, NULL},
        {"", "", "", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf image CLEANUP_BUF = {0};
        struct buf fields CLEANUP_BUF = {0};
        if (rows[i].name != NULL) {
            cri_add_text(&image, 1, rows[i].name);
        }
        if (rows[i].specified != NULL) {
            cri_add_text(&image, 18, rows[i].specified);
        }
        cri_add_message(&fields, 4, &image);
        if (rows[i].ref != NULL) {
            cri_add_text(&fields, 5, rows[i].ref);
        }
        buf_reset(&text);
        container_infos_finish(&infos);
        add_row(&fields);
        TEST_ASSERT_EQUAL_INT(0, read_containers());
        const char *image_read = infos.rows[0].image;
        if (rows[i].expected == NULL) {
            TEST_ASSERT_NULL(image_read);
        } else {
            TEST_ASSERT_EQUAL_STRING(rows[i].expected, image_read);
        }
    }
}

static void test_what_has_ended_is_left_out(void) {
    struct buf fields CLEANUP_BUF = {0};
    cri_add_number(&fields, 6, 2); /* exited */
    add_row(&fields);
    TEST_ASSERT_EQUAL_INT(0, read_containers());
    TEST_ASSERT_EQUAL_UINT64(0, infos.n_rows);
    buf_reset(&text);
    buf_reset(&fields);
    cri_add_number(&fields, 3, 1); /* not ready */
    add_row(&fields);
    TEST_ASSERT_EQUAL_INT(0, read_pods());
    TEST_ASSERT_EQUAL_UINT64(0, infos.n_rows);
}

/* An image's labels are among a container's, and a pod's author chooses the pod's. */
static void test_labels_name_nothing(void) {
    static const char *const labels[] = {"io.kubernetes.container.name", "io.kubernetes.pod.name",
                                         "io.kubernetes.pod.namespace",
                                         "io.kubernetes.cri.container-name"};
    for (size_t i = 0; i < ARRAY_LEN(labels); i++) {
        struct buf fields CLEANUP_BUF = {0};
        cri_add_label(&fields, 8, labels[i], "victim");
        add_row(&fields);
    }
    TEST_ASSERT_EQUAL_INT(0, read_containers());
    TEST_ASSERT_EQUAL_UINT64(ARRAY_LEN(labels), infos.n_rows);
    for (size_t i = 0; i < infos.n_rows; i++) {
        TEST_ASSERT_NULL(infos.rows[i].container);
        TEST_ASSERT_NULL(infos.rows[i].pod);
        TEST_ASSERT_NULL(infos.rows[i].namespace);
    }
}

static void test_odd_rows(void) {
    struct buf fields CLEANUP_BUF = {0};
    cri_add_label(&fields, 5, "", "x");
    cri_add_label(&fields, 5, "job", "");
    cri_add_label(&fields, 5, "io.kubernetes.container.name", "POD");
    cri_add_label(&fields, 5, "own", "y");
    cri_add(&fields, 15, "\0\0", 2); /* of a later version */
    cri_add_number(&fields, 1, 7);   /* the id, but a number */
    cri_add_text(&text, 1, "");      /* nothing, not even an id */
    add_row(&fields);
    TEST_ASSERT_EQUAL_INT(0, read_pods());
    TEST_ASSERT_EQUAL_UINT64(1, infos.n_rows);
    TEST_ASSERT_EQUAL_UINT64(1, infos.rows[0].n_labels);
    TEST_ASSERT_EQUAL_STRING("own", infos.rows[0].labels[0].name);
    TEST_ASSERT_NULL(infos.rows[0].container);
    TEST_ASSERT_EQUAL_STRING("c1", infos.rows[0].id);
}

static void test_every_cut_is_refused_or_read(void) {
    cri_add_pod(&text, "s1", "cam", "cars");
    size_t len = text.len;
    for (size_t cut = 1; cut < len; cut++) {
        char *copy CLEANUP_FREE = malloc(cut); /* so that a read behind its end is seen */
        memcpy(copy, text.data, cut);
        TEST_ASSERT_EQUAL_INT(-EINVAL, cri_message_pods(copy, cut, wanted, &infos));
    }
    TEST_ASSERT_EQUAL_UINT64(0, infos.n_rows);
}

static void test_most_rows(void) {
    for (int i = 0; i < 10001; i++) {
        cri_add_pod(&text, "s", "p", "j");
    }
    TEST_ASSERT_EQUAL_INT(0, read_pods());
    TEST_ASSERT_EQUAL_UINT64(10000, infos.n_rows);
}
