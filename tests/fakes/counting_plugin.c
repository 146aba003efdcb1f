#include <poll.h>
#include <stdio.h>
#include <unistd.h>
#include <waap/plugin.h>

/* A plugin that counts until its input ends, and then says how far it came. */
int main(void) {
    waap_configure(&(struct waap_options){.plugin = "objcounter", .interval_ms = 5});
    struct waap_metric *frames = waap_counter("frames_total", NULL, NULL);
    struct waap_metric *seconds = waap_histogram("seconds", NULL, NULL);
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    unsigned long n = 0;
    while (poll(&input, 1, 1) == 0) {
        for (int i = 0; i < 1000; i++) {
            waap_inc(frames);
            waap_observe(seconds, 0.25);
            n++;
        }
        waap_flush(0);
    }
    if (!waap_flush(30000)) {
        return 1;
    }
    printf("%lu\n", n);
    return 0;
}
