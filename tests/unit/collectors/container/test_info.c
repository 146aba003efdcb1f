#include "collectors/container/info.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unity.h>

#include "exporter/core/buf.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/memory.h"

static const char *const wanted[] = {"app", "com.docker.compose.*", NULL};

static void add_text(struct buf *out, const char *name, const char *text) {
    if (text != NULL) {
        buf_printf(out, "%s=%s ", name, text);
    }
}

static void print(struct buf *out, const struct container_info *info) {
    add_text(out, "id", info->id);
    add_text(out, "name", info->name);
    add_text(out, "image", info->image);
    add_text(out, "pod", info->pod);
    add_text(out, "namespace", info->namespace);
    add_text(out, "container", info->container);
    buf_add_str(out, info->sandbox ? "sandbox " : "");
    for (size_t i = 0; i < info->n_labels; i++) {
        add_text(out, info->labels[i].name, info->labels[i].value);
    }
}

static void test_list(void) {
    static const struct {
        const char *text;
        int result;
        const char *expected;
    } cases[] = {
        {"[]", 0, ""},
        {"[{\"Id\":\"a\",\"Names\":[\"/web\"],\"Image\":\"nginx:1\",\"Labels\":{\"app\":\"x\","
         "\"com.docker.compose.service\":\"web\",\"secret\":\"y\"}}]",
         0, "id=a name=web image=nginx:1 app=x com.docker.compose.service=web |"},
        {"[{\"Id\":\"a\",\"Names\":null},{\"Id\":\"b\",\"Names\":[],\"Labels\":null},{\"Id\":\"\"},"
         "{\"Name\":1},7,\"x\",{\"Id\":\"c\",\"Names\":[\"plain\"],\"Labels\":{\"app\":5}}]",
         0, "id=a |id=b |id=c name=plain |"},
        {"[{\"Id\":\"p\",\"Names\":[\"/k8s_POD_cam\"],\"Image\":\"pause\",\"Labels\":{"
         "\"io.kubernetes.container.name\":\"POD\",\"io.kubernetes.pod.name\":\"cam\","
         "\"io.kubernetes.pod.namespace\":\"ses\",\"io.kubernetes.docker.type\":\"podsandbox\"}}]",
         0, "id=p name=k8s_POD_cam image=pause pod=cam namespace=ses sandbox |"},
        /* Labels that neither Docker nor the kubelet overwrites, as an image may have them. */
        {"[{\"Id\":\"v\",\"Names\":[\"/own\"],\"Labels\":{"
         "\"io.kubernetes.cri.container-name\":\"victim\","
         "\"io.kubernetes.cri.sandbox-name\":\"victim\","
         "\"io.kubernetes.cri.sandbox-namespace\":\"ses\","
         "\"io.kubernetes.cri.container-type\":\"sandbox\","
         "\"io.kubernetes.cri-o.ImageName\":\"victim:1\","
         "\"io.kubernetes.cri-o.ContainerType\":\"sandbox\"}}]",
         0, "id=v name=own |"},
        {"[{\"Id\":\"l\",\"Names\":[\"/a/alias\",\"/own\"]}]", 0, "id=l name=own |"},
        {"{\"message\":\"no\"}", -EINVAL, ""},
        {"[{\"Id\":\"a\"", -EINVAL, ""},
        {"", -EINVAL, ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct container_infos infos CLEANUP_CONTAINER_INFOS = {0};
        struct buf got CLEANUP_BUF = {0};
        char *text CLEANUP_FREE = mem_strdup(cases[i].text);
        int r = container_json_list(text, strlen(text), wanted, &infos);
        TEST_ASSERT_EQUAL_INT_MESSAGE(cases[i].result, r, cases[i].text);
        for (size_t j = 0; r == 0 && j < infos.n_rows; j++) {
            print(&got, &infos.rows[j]);
            buf_add_char(&got, '|');
        }
        TEST_ASSERT_EQUAL_STRING_MESSAGE(cases[i].expected, buf_str(&got), cases[i].text);
    }
}

static void test_event(void) {
    static const struct {
        const char *text;
        int result;
        bool gone;
        const char *expected;
    } cases[] = {
        {"{\"Type\":\"container\",\"Action\":\"start\",\"Actor\":{\"ID\":\"a\",\"Attributes\":{"
         "\"image\":\"nginx\",\"name\":\"web\",\"app\":\"x\",\"other\":\"y\"}}}",
         0, false, "id=a name=web image=nginx app=x "},
        {"{\"Type\":\"container\",\"Action\":\"rename\",\"Actor\":{\"ID\":\"a\",\"Attributes\":{"
         "\"image\":\"nginx\",\"name\":\"new\",\"oldName\":\"/web\"}}}",
         0, false, "id=a name=new image=nginx "},
        {"{\"Action\":\"start\",\"Actor\":{\"ID\":\"v\",\"Attributes\":{\"image\":\"i\","
         "\"io.kubernetes.cri.container-name\":\"victim\",\"name\":\"own\"}}}",
         0, false, "id=v name=own image=i "},
        {"{\"Action\":\"destroy\",\"Actor\":{\"ID\":\"a\"}}", 0, true, "id=a "},
        {"{\"Type\":\"network\",\"Action\":\"create\",\"Actor\":{\"ID\":\"a\"}}", -ENODATA, false,
         ""},
        {"{\"Action\":\"exec_start: sh\",\"Actor\":{\"ID\":\"a\"}}", -ENODATA, false, ""},
        {"{\"Action\":\"start\",\"Actor\":{}}", -ENODATA, false, ""},
        {"{\"Action\":\"start\"}", -ENODATA, false, ""},
        {"[]", -EINVAL, false, ""},
        {"nonsense", -EINVAL, false, ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct container_info info CLEANUP_CONTAINER_INFO = {0};
        struct buf got CLEANUP_BUF = {0};
        char *text CLEANUP_FREE = mem_strdup(cases[i].text);
        bool gone = false;
        int r = container_json_event(text, strlen(text), wanted, &info, &gone);
        TEST_ASSERT_EQUAL_INT_MESSAGE(cases[i].result, r, cases[i].text);
        TEST_ASSERT_EQUAL_MESSAGE(cases[i].gone, gone, cases[i].text);
        print(&got, &info);
        TEST_ASSERT_EQUAL_STRING_MESSAGE(cases[i].expected, buf_str(&got), cases[i].text);
    }
}

static void test_bundle(void) {
    static const struct {
        const char *text;
        int result;
        const char *expected;
    } cases[] = {
        {"{\"annotations\":{\"io.kubernetes.cri.container-type\":\"container\","
         "\"io.kubernetes.cri.container-name\":\"counter\",\"io.kubernetes.cri.image-name\":"
         "\"waggle/counter:1\",\"io.kubernetes.cri.sandbox-name\":\"counter-1\","
         "\"io.kubernetes.cri.sandbox-namespace\":\"ses\"}}",
         0, "image=waggle/counter:1 pod=counter-1 namespace=ses container=counter "},
        {"{\"annotations\":{\"io.kubernetes.cri.container-type\":\"sandbox\","
         "\"io.kubernetes.cri.podsandbox.image-name\":\"pause:3\","
         "\"io.kubernetes.cri.sandbox-name\":\"counter-1\"}}",
         0, "image=pause:3 pod=counter-1 sandbox "},
        /* The author of a pod may be allowed annotations, but not those that containerd writes. */
        {"{\"annotations\":{\"io.kubernetes.container.name\":\"victim\","
         "\"io.kubernetes.pod.name\":\"victim\",\"io.kubernetes.docker.type\":\"podsandbox\","
         "\"io.kubernetes.cri.sandbox-name\":\"own-1\"}}",
         0, "pod=own-1 "},
        {"{\"annotations\":{}}", -ENODATA, ""},
        {"{\"ociVersion\":\"1.0.2\"}", -ENODATA, ""},
        {"{\"annotations\":[1]}", -ENODATA, ""},
        {"", -EINVAL, ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct container_info info CLEANUP_CONTAINER_INFO = {0};
        struct buf got CLEANUP_BUF = {0};
        char *text CLEANUP_FREE = mem_strdup(cases[i].text);
        int r = container_json_bundle(text, strlen(text), wanted, &info);
        TEST_ASSERT_EQUAL_INT_MESSAGE(cases[i].result, r, cases[i].text);
        print(&got, &info);
        TEST_ASSERT_EQUAL_STRING_MESSAGE(cases[i].expected, buf_str(&got), cases[i].text);
    }
}

static void test_labels_are_bounded(void) {
    static const char *const all[] = {"*", NULL};
    struct container_info info CLEANUP_CONTAINER_INFO = {0};
    char name[32], value[1100];
    memset(value, 'x', sizeof(value));
    value[1025] = '\0';
    container_info_label(&info, all, CONTAINER_LABELS_ANYBODY, "long", value);
    TEST_ASSERT_EQUAL_UINT64(0, info.n_labels);
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "label%d", i);
        container_info_label(&info, all, CONTAINER_LABELS_ANYBODY, name, "v");
    }
    TEST_ASSERT_EQUAL_UINT64(64, info.n_labels);
}
