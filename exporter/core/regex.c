#include "exporter/core/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <errno.h>
#include <pcre2.h>
#include <stdbool.h>
#include <string.h>

#include "exporter/core/memory.h"

/* MATCH_LIMIT steps take half a millisecond. Repetitions can make many KiB of program from a few
 * bytes. */
enum {
    MATCH_LIMIT = 5000,
    DEPTH_LIMIT = 5000,
    HEAP_LIMIT_KIB = 1024,
    NEST_LIMIT = 64,
    MAX_PROGRAM_BYTES = 32 << 10,
};

struct regex {
    pcre2_code *code;
    pcre2_match_context *limits;
};

static void *must(void *pointer) {
    if (pointer == NULL) {
        mem_out();
    }
    return pointer;
}

int regex_create(const char *pattern, struct regex **ret_regex, struct error *err) {
    /* Groups without names capture nothing, so there is nothing to refer back to. */
    static const uint32_t options = PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_DOTALL |
                                    PCRE2_DOLLAR_ENDONLY | PCRE2_NO_AUTO_CAPTURE |
                                    PCRE2_NEVER_BACKSLASH_C;
    struct regex *regex CLEANUP_REGEX = mem_zalloc(1, sizeof(*regex));
    pcre2_compile_context *context = must(pcre2_compile_context_create(NULL));
    int code;
    size_t offset;
    pcre2_set_max_pattern_length(context, REGEX_MAX_LEN);
    pcre2_set_parens_nest_limit(context, NEST_LIMIT);
    regex->code =
        pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, options, &code, &offset, context);
    pcre2_compile_context_free(context);
    if (regex->code == NULL) {
        char reason[128];
        pcre2_get_error_message(code, (PCRE2_UCHAR *)reason, sizeof(reason));
        return error_set(err, -EINVAL, "%s at offset %zu", reason, offset);
    }
    size_t size;
    pcre2_pattern_info(regex->code, PCRE2_INFO_SIZE, &size);
    if (size > MAX_PROGRAM_BYTES) {
        return error_set(err, -EINVAL, "regular expression is too large when compiled");
    }
    regex->limits = must(pcre2_match_context_create(NULL));
    pcre2_set_match_limit(regex->limits, MATCH_LIMIT);
    pcre2_set_depth_limit(regex->limits, DEPTH_LIMIT);
    pcre2_set_heap_limit(regex->limits, HEAP_LIMIT_KIB);
    *ret_regex = TAKE(regex);
    return 0;
}

void regex_destroy(struct regex *regex) {
    if (regex != NULL) {
        pcre2_code_free(regex->code);
        pcre2_match_context_free(regex->limits);
        free(regex);
    }
}

static int run(const struct regex *regex, const char *text, bool whole) {
    size_t len = strlen(text);
    pcre2_match_data *data = must(pcre2_match_data_create(1, NULL));
    int r = pcre2_match(regex->code, (PCRE2_SPTR)text, len, 0,
                        whole ? PCRE2_ANCHORED | PCRE2_ENDANCHORED : 0, data, regex->limits);
    /* Bytes that are no UTF-8 begin and end the text for PCRE2. */
    const size_t *found = pcre2_get_ovector_pointer(data);
    bool matches = r >= 0 && (!whole || (found[0] == 0 && found[1] == len));
    pcre2_match_data_free(data);
    return matches ? 1 : r >= 0 || r == PCRE2_ERROR_NOMATCH ? 0 : -E2BIG;
}

int regex_match(const struct regex *regex, const char *text) {
    return run(regex, text, true);
}

int regex_search(const struct regex *regex, const char *text) {
    return run(regex, text, false);
}
