#include <curl/curl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
// The event loop that libcurl's socket interface needs; Swift's Glibc module does not export these two.
#include <sys/epoll.h>
#include <sys/eventfd.h>

// Swift cannot call C functions with variable arguments, so there is one function per argument type.
// The parentheses around curl_easy_setopt avoid the macro of the same name, which requires a constant option.

static inline CURLcode curl_set_number(CURL *easy, CURLoption option, long value) {
    return (curl_easy_setopt)(easy, option, value);
}

static inline CURLcode curl_set_text(CURL *easy, CURLoption option, const char *text) {
    return (curl_easy_setopt)(easy, option, text);
}

static inline CURLcode curl_set_pointer(CURL *easy, CURLoption option, void *pointer) {
    return (curl_easy_setopt)(easy, option, pointer);
}

/// Copies `count` bytes, which libcurl would otherwise read during the transfer.
static inline CURLcode curl_set_body(CURL *easy, const void *bytes, size_t count) {
    CURLcode code = (curl_easy_setopt)(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)count);
    return code ? code : (curl_easy_setopt)(easy, CURLOPT_COPYPOSTFIELDS, count ? bytes : "");
}

/// Uploads `count` bytes, which libcurl requests from `read` with `context` while it sends.
static inline CURLcode curl_set_upload(CURL *easy, curl_read_callback read, void *context, size_t count) {
    CURLcode code = (curl_easy_setopt)(easy, CURLOPT_UPLOAD, 1L);
    if (!code) code = (curl_easy_setopt)(easy, CURLOPT_READFUNCTION, read);
    if (!code) code = (curl_easy_setopt)(easy, CURLOPT_READDATA, context);
    if (!code) code = (curl_easy_setopt)(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)count);
    return code;
}

static inline CURLcode curl_set_no_body(CURL *easy) {
    CURLcode code = (curl_easy_setopt)(easy, CURLOPT_POSTFIELDS, (void *)0);
    return code ? code : (curl_easy_setopt)(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)-1);
}

static inline CURLcode curl_set_callbacks(
    CURL *easy, curl_write_callback head, curl_write_callback body, curl_prereq_callback begin, void *context) {
    CURLcode code = (curl_easy_setopt)(easy, CURLOPT_HEADERFUNCTION, head);
    if (!code) code = (curl_easy_setopt)(easy, CURLOPT_HEADERDATA, context);
    if (!code) code = (curl_easy_setopt)(easy, CURLOPT_WRITEFUNCTION, body);
    if (!code) code = (curl_easy_setopt)(easy, CURLOPT_WRITEDATA, context);
    if (!code) code = (curl_easy_setopt)(easy, CURLOPT_PREREQFUNCTION, begin);
    if (!code) code = (curl_easy_setopt)(easy, CURLOPT_PREREQDATA, context);
    if (!code) code = (curl_easy_setopt)(easy, CURLOPT_PRIVATE, context);
    return code;
}

static inline CURLcode curl_set_connect_callback(CURL *easy, curl_opensocket_callback open, void *context) {
    CURLcode code = (curl_easy_setopt)(easy, CURLOPT_OPENSOCKETFUNCTION, open);
    return code ? code : (curl_easy_setopt)(easy, CURLOPT_OPENSOCKETDATA, context);
}

/// Writes the address to `bytes`, which must have room for 16. Returns the number of bytes; 0 if it is not an IP
/// address.
static inline int curl_address_bytes(const struct curl_sockaddr *address, unsigned char *bytes) {
    const struct sockaddr *any = &address->addr;
    if (address->family == AF_INET) {
        memcpy(bytes, &((const struct sockaddr_in *)(const void *)any)->sin_addr, 4);
        return 4;
    }
    if (address->family == AF_INET6) {
        memcpy(bytes, &((const struct sockaddr_in6 *)(const void *)any)->sin6_addr, 16);
        return 16;
    }
    return 0;
}

/// Opens a socket as libcurl does by default.
static inline curl_socket_t curl_open_socket(const struct curl_sockaddr *address) {
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static inline long curl_get_status(CURL *easy) {
    long status = 0;
    (curl_easy_getinfo)(easy, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

/// Returns the expiry of a certificate of the server's chain as text; NULL after the last one, or if certificates were
/// not requested. Valid for the lifetime of the handle.
static inline const char *curl_get_certificate_end(CURL *easy, int index) {
    struct curl_certinfo *chain = 0;
    if ((curl_easy_getinfo)(easy, CURLINFO_CERTINFO, &chain) || !chain || index >= chain->num_of_certs) return 0;
    for (const struct curl_slist *line = chain->certinfo[index]; line; line = line->next)
        if (!strncmp(line->data, "Expire date:", 12)) return line->data + 12;
    return 0;
}

static inline void *curl_get_context(CURL *easy) {
    char *context = 0;
    (curl_easy_getinfo)(easy, CURLINFO_PRIVATE, &context);
    return context;
}

static inline CURLMcode curl_multi_set_number(CURLM *multi, CURLMoption option, long value) {
    return (curl_multi_setopt)(multi, option, value);
}

static inline CURLMcode curl_multi_set_callbacks(
    CURLM *multi, curl_socket_callback socket, curl_multi_timer_callback timer, void *context) {
    CURLMcode code = (curl_multi_setopt)(multi, CURLMOPT_SOCKETFUNCTION, socket);
    if (!code) code = (curl_multi_setopt)(multi, CURLMOPT_SOCKETDATA, context);
    if (!code) code = (curl_multi_setopt)(multi, CURLMOPT_TIMERFUNCTION, timer);
    if (!code) code = (curl_multi_setopt)(multi, CURLMOPT_TIMERDATA, context);
    return code;
}

static void curl_jar_lock(CURL *easy, curl_lock_data data, curl_lock_access access, void *mutex) {
    pthread_mutex_lock((pthread_mutex_t *)mutex);
}

static void curl_jar_unlock(CURL *easy, curl_lock_data data, void *mutex) {
    pthread_mutex_unlock((pthread_mutex_t *)mutex);
}

/// A cookie jar and the mutex that protects it.
struct curl_jar {
    CURLSH *share;
    pthread_mutex_t mutex;
};

/// Returns NULL if memory is exhausted.
static inline struct curl_jar *curl_jar_new(void) {
    struct curl_jar *jar = (struct curl_jar *)malloc(sizeof(struct curl_jar));
    if (!jar) return 0;
    jar->share = curl_share_init();
    if (!jar->share) {
        free(jar);
        return 0;
    }
    pthread_mutex_init(&jar->mutex, 0);
    curl_share_setopt(jar->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_COOKIE);
    curl_share_setopt(jar->share, CURLSHOPT_LOCKFUNC, curl_jar_lock);
    curl_share_setopt(jar->share, CURLSHOPT_UNLOCKFUNC, curl_jar_unlock);
    curl_share_setopt(jar->share, CURLSHOPT_USERDATA, &jar->mutex);
    return jar;
}

static inline void curl_jar_free(struct curl_jar *jar) {
    curl_share_cleanup(jar->share);
    pthread_mutex_destroy(&jar->mutex);
    free(jar);
}
