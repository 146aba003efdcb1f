#include "exporter/http/users.h"

#include <crypt.h>
#include <ctype.h>
#include <errno.h>
#include <nettle/base64.h>
#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "exporter/core/memory.h"
#include "exporter/net/network.h"

enum {
    USERS_MAX_HEADER = 1024, /* libcrypt takes passwords of up to 511 bytes */
    USERS_MAX_REJECTED = 64,
    USERS_KEY_LEN = 32,
    USERS_TAG_LEN = 32,
    BCRYPT_LEN = 60,
    BCRYPT_SETTING_LEN = 29, /* "$2b$10$" and 22 characters of salt; the checksum follows */
    BCRYPT_MIN_COST = 4,
    BCRYPT_MAX_COST = 18, /* 17 s here; each step more doubles it */
};

/* Identifies a pair of name and password without revealing it. All zero: none. */
struct tag {
    unsigned char bytes[USERS_TAG_LEN];
};

struct user {
    char *name;
    char hash[BCRYPT_LEN + 1];
    struct tag granted; /* the latest right password */
};

/* "name:password" of a header, decoded. Lives on the stack and is wiped after use. */
struct credentials {
    char text[USERS_MAX_HEADER];
    size_t len;
    size_t name_len;
    const char *password;
};

struct users {
    struct user *users;
    size_t n_users;
    unsigned char key[USERS_KEY_LEN];
    pthread_mutex_t lock; /* guards `granted` of all users and the wrong passwords */
    /* Apart from the right ones, so that a flood of wrong passwords evicts none of them. */
    struct tag rejected[USERS_MAX_REJECTED];
    size_t next_rejected; /* the oldest */
};

static void credentials_wipe(struct credentials *credentials) {
    explicit_bzero(credentials, sizeof(*credentials));
}
#define CLEANUP_CREDENTIALS CLEANUP(credentials_wipe)

/* "Basic bmFtZTpwYXNzd29yZA==" (RFC 7617). A NUL inside is rejected: libcrypt would end the
 * password there. */
static int credentials_parse(const char *authorization, struct credentials *out) {
    static const char scheme[] = "Basic ";
    if (authorization == NULL || strnlen(authorization, USERS_MAX_HEADER) == USERS_MAX_HEADER ||
        strncasecmp(authorization, scheme, strlen(scheme)) != 0) {
        return -EINVAL;
    }
    const char *token = authorization + strlen(scheme);
    token += strspn(token, " ");
    size_t len = strcspn(token, " \t");
    struct base64_decode_ctx decoder;
    base64_decode_init(&decoder);
    if (token[len + strspn(token + len, " \t")] != '\0' ||
        base64_decode_update(&decoder, &out->len, (uint8_t *)out->text, len, token) == 0 ||
        base64_decode_final(&decoder) == 0) {
        return -EINVAL;
    }
    out->text[out->len] = '\0';
    const char *colon = memchr(out->text, ':', out->len);
    if (colon == NULL || strlen(out->text) != out->len) {
        return -EINVAL;
    }
    out->name_len = (size_t)(colon - out->text);
    out->password = colon + 1;
    return 0;
}

static struct tag tag_compute(const struct users *users, const void *data, size_t len) {
    struct tag tag;
    struct hmac_sha256_ctx hmac;
    hmac_sha256_set_key(&hmac, sizeof(users->key), users->key);
    hmac_sha256_update(&hmac, len, data);
    hmac_sha256_digest(&hmac, sizeof(tag.bytes), tag.bytes);
    explicit_bzero(&hmac, sizeof(hmac));
    return tag;
}

struct users *users_create(void) {
    struct users *users = mem_zalloc(1, sizeof(*users));
    pthread_mutex_init(&users->lock, NULL);
    if (getentropy(users->key, sizeof(users->key)) < 0) {
        users_destroy(users);
        return NULL;
    }
    return users;
}

void users_destroy(struct users *users) {
    if (users == NULL) {
        return;
    }
    for (size_t i = 0; i < users->n_users; i++) {
        free(users->users[i].name);
    }
    free(users->users);
    pthread_mutex_destroy(&users->lock);
    explicit_bzero(users, sizeof(*users));
    free(users);
}

static int hash_check(const char *hash, struct error *err) {
    static const char digits[] = "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    bool known = strlen(hash) == BCRYPT_LEN && strncmp(hash, "$2", 2) == 0 &&
                 strchr("aby", hash[2]) != NULL && hash[3] == '$' &&
                 isdigit((unsigned char)hash[4]) && isdigit((unsigned char)hash[5]) &&
                 hash[6] == '$' && strspn(hash + 7, digits) == BCRYPT_LEN - 7;
    if (!known) {
        return error_set(err, -EINVAL,
                         "expected a bcrypt hash: $2a$, $2b$ or $2y$, 60 characters in all");
    }
    int cost = (hash[4] - '0') * 10 + (hash[5] - '0');
    if (cost < BCRYPT_MIN_COST || cost > BCRYPT_MAX_COST) {
        return error_set(err, -EINVAL, "expected a bcrypt cost from %d to %d, got %d",
                         BCRYPT_MIN_COST, BCRYPT_MAX_COST, cost);
    }
    return 0;
}

int users_add(struct users *users, const char *name, const char *hash, struct error *err) {
    if (strchr(name, ':') != NULL) {
        return error_set(err, -EINVAL, "expected a name without a colon");
    }
    int r = hash_check(hash, err);
    if (r < 0) {
        return r;
    }
    users->users = mem_resize(users->users, users->n_users + 1, sizeof(*users->users));
    struct user *user = &users->users[users->n_users++];
    *user = (struct user){.name = mem_strdup(name)};
    memcpy(user->hash, hash, sizeof(user->hash));
    return 0;
}

static bool is_equal(const struct users *a, const struct users *b) {
    bool equal = a->n_users == b->n_users;
    for (size_t i = 0; equal && i < a->n_users; i++) {
        equal = strcmp(a->users[i].name, b->users[i].name) == 0 &&
                strcmp(a->users[i].hash, b->users[i].hash) == 0;
    }
    return equal;
}

void users_inherit(struct users *users, struct users *from) {
    if (users == from || memcmp(users->key, from->key, sizeof(users->key)) == 0 ||
        !is_equal(users, from)) {
        return;
    }
    memcpy(users->key, from->key, sizeof(users->key));
    pthread_mutex_lock(&from->lock);
    for (size_t i = 0; i < users->n_users; i++) {
        users->users[i].granted = from->users[i].granted;
    }
    memcpy(users->rejected, from->rejected, sizeof(users->rejected));
    users->next_rejected = from->next_rejected;
    pthread_mutex_unlock(&from->lock);
}

static bool is_same(const struct tag *a, const struct tag *b) {
    return memeql_sec(a, b, sizeof(*a)) != 0;
}

enum users_verdict users_lookup(struct users *users, const char *authorization) {
    struct credentials credentials CLEANUP_CREDENTIALS;
    if (credentials_parse(authorization, &credentials) < 0) {
        return USERS_DENIED;
    }
    struct tag tag = tag_compute(users, credentials.text, credentials.len);
    bool granted = false, rejected = false;
    pthread_mutex_lock(&users->lock);
    for (size_t i = 0; i < users->n_users; i++) {
        granted |= is_same(&users->users[i].granted, &tag);
    }
    for (size_t i = 0; i < USERS_MAX_REJECTED; i++) {
        rejected |= is_same(&users->rejected[i], &tag);
    }
    pthread_mutex_unlock(&users->lock);
    return granted ? USERS_GRANTED : rejected ? USERS_DENIED : USERS_UNKNOWN;
}

static struct user *user_find(const struct users *users, const char *name, size_t len) {
    for (size_t i = 0; i < users->n_users; i++) {
        const char *known = users->users[i].name;
        if (strlen(known) == len && memcmp(known, name, len) == 0) {
            return &users->users[i];
        }
    }
    return NULL;
}

/* The user to check an unknown name against, always the same for the same name: even with hashes
 * of several costs, the time taken does not reveal which users exist. */
static const struct user *user_stand_in(const struct users *users, const char *name, size_t len) {
    struct tag tag = tag_compute(users, name, len);
    uint64_t number;
    memcpy(&number, tag.bytes, sizeof(number));
    return &users->users[number % users->n_users];
}

static bool password_matches(const char *password, const char *hash) {
    struct crypt_data *data = mem_zalloc(1, sizeof(*data));
    const char *made = crypt_rn(password, hash, data, sizeof(*data));
    /* Compares the checksum only: libcrypt clears unused bits of the salt it returns. */
    bool same = made != NULL && strlen(made) == BCRYPT_LEN &&
                memeql_sec(made + BCRYPT_SETTING_LEN, hash + BCRYPT_SETTING_LEN,
                           BCRYPT_LEN - BCRYPT_SETTING_LEN) != 0;
    explicit_bzero(data, sizeof(*data));
    free(data);
    return same;
}

bool users_verify(struct users *users, const char *authorization) {
    /* An equal request may have been checked while this one waited. */
    enum users_verdict known = users_lookup(users, authorization);
    if (known != USERS_UNKNOWN) {
        return known == USERS_GRANTED;
    }
    struct credentials credentials CLEANUP_CREDENTIALS;
    if (users->n_users == 0 || credentials_parse(authorization, &credentials) < 0) {
        return false;
    }
    struct user *user = user_find(users, credentials.text, credentials.name_len);
    const struct user *against =
        user != NULL ? user : user_stand_in(users, credentials.text, credentials.name_len);
    bool matches = password_matches(credentials.password, against->hash);
    bool granted = matches && user != NULL;
    struct tag tag = tag_compute(users, credentials.text, credentials.len);
    pthread_mutex_lock(&users->lock);
    if (granted) {
        user->granted = tag;
    } else {
        users->rejected[users->next_rejected] = tag;
        users->next_rejected = (users->next_rejected + 1) % USERS_MAX_REJECTED;
    }
    pthread_mutex_unlock(&users->lock);
    return granted;
}

char *users_name(const char *authorization) {
    struct credentials credentials CLEANUP_CREDENTIALS;
    return credentials_parse(authorization, &credentials) == 0
               ? mem_strndup(credentials.text, credentials.name_len)
               : NULL;
}

/* ---- passwords that wait to be checked ---- */

static int64_t failed_ns(const struct http_checks *checks, const struct in6_addr *address) {
    for (size_t i = 0; i < HTTP_CHECKS_MAX_FAILURES && checks->failures[i].at_ns != 0; i++) {
        if (network_is_same_peer(&checks->failures[i].address, address)) {
            return checks->failures[i].at_ns;
        }
    }
    return 0;
}

/* Whether `a` goes before `b` whatever their age. */
static bool precedes(const struct http_checks *checks, const struct http_check *a,
                     const struct http_check *b) {
    return failed_ns(checks, &a->address) < failed_ns(checks, &b->address);
}

static struct http_check *take_out(struct http_checks *checks, struct http_check **link) {
    struct http_check *check = *link;
    *link = check->next;
    checks->n_waiting--;
    return check;
}

/* The last in order; of one address if it is not NULL. */
static struct http_check **find_last(struct http_checks *checks, const struct in6_addr *address) {
    struct http_check **last = NULL;
    for (struct http_check **link = &checks->newest; *link != NULL; link = &(*link)->next) {
        bool counts = address == NULL || network_is_same_peer(&(*link)->address, address);
        if (counts && (last == NULL || !precedes(checks, *link, *last))) {
            last = link;
        }
    }
    return last;
}

struct http_check *http_checks_add(struct http_checks *checks, struct http_check *check) {
    check->next = checks->newest;
    checks->newest = check;
    checks->n_waiting++;
    size_t n_same = 0;
    for (const struct http_check *c = checks->newest; c != NULL; c = c->next) {
        n_same += network_is_same_peer(&c->address, &check->address);
    }
    if (n_same > checks->max * 3 / 4) {
        return take_out(checks, find_last(checks, &check->address));
    }
    return checks->n_waiting > checks->max ? take_out(checks, find_last(checks, NULL)) : NULL;
}

struct http_check *http_checks_take(struct http_checks *checks) {
    struct http_check **first = &checks->newest;
    size_t n_equal = 0;
    for (struct http_check **link = first; *link != NULL; link = &(*link)->next) {
        if (precedes(checks, *link, *first)) {
            first = link;
            n_equal = 1;
        } else if (n_equal < HTTP_CHECKS_TURN && !precedes(checks, *first, *link)) {
            first = link;
            n_equal++;
        }
    }
    return *first != NULL ? take_out(checks, first) : NULL;
}

void http_checks_note_failure(struct http_checks *checks, const struct in6_addr *address,
                              int64_t now_ns) {
    struct http_check_failure *oldest = &checks->failures[0];
    for (size_t i = 0; i < HTTP_CHECKS_MAX_FAILURES; i++) {
        struct http_check_failure *failure = &checks->failures[i];
        if (failure->at_ns == 0 || network_is_same_peer(&failure->address, address)) {
            oldest = failure;
            break;
        }
        oldest = failure->at_ns < oldest->at_ns ? failure : oldest;
    }
    *oldest = (struct http_check_failure){*address, now_ns};
}
