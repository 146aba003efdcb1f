/* Linked with one whole room; see meson.build. */
int main(void) {
    return 0;
}
