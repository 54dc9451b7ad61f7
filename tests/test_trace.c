/* SPDX-License-Identifier: BSD-3-Clause */
/* Traces: the JSON is what Perfetto reads, text is escaped, a file is complete or not there. */
#define _GNU_SOURCE
#include <dirent.h>
#include <jansson.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "check.h"
#include "trace_sample.h"

static const int64_t rows[] = {64, 64, 64, 64, 64};
static char directory[] = "/tmp/starlin-trace-XXXXXX";
static char path_buffer[512];
static perf_error_t error;

static const char *path_of(const char *name)
{
    snprintf(path_buffer, sizeof path_buffer, "%s/%s", directory, name);
    return path_buffer;
}

static int nfiles(void)
{
    int n = 0;
    DIR *dir = opendir(directory);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        n += entry->d_name[0] != '.';
    closedir(dir);
    return n;
}

/* The whole file; freed by the caller. */
static char *slurp(const char *name, size_t *nbytes_p)
{
    FILE *file = fopen(path_of(name), "r");
    CHECK(file != NULL);
    if (file == NULL)
        return strdup("");
    fseek(file, 0, SEEK_END);
    size_t nbytes = (size_t)ftell(file);
    rewind(file);
    char *text = calloc(1, nbytes + 1);
    CHECK_EQ_INT(fread(text, 1, nbytes, file), nbytes);
    fclose(file);
    *nbytes_p = nbytes;
    return text;
}

static json_t *load(const char *name)
{
    json_error_t problem;
    json_t *root = json_load_file(path_of(name), JSON_REJECT_DUPLICATES, &problem);
    check_count++;
    if (root == NULL)
        CHECK_FAIL("%s: %s at line %d", name, problem.text, problem.line);
    return root;
}

static const char *text_in(json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* Every event has what its kind needs; arrows come in pairs; counts are right. */
static void test_json(void)
{
    sample_t sample;
    sample_make(&sample, "t", 4, rows, 5, true);
    CHECK(trace_write(&sample.trace, 1, "A \"title\" <b>", path_of("a.json"), &error));
    json_t *root = load("a.json");
    CHECK_EQ_STR(text_in(json_object_get(root, "otherData"), "title"), "A \"title\" <b>");
    json_t *events = json_object_get(root, "traceEvents"), *event;
    size_t index, nspans = 0, nprocesses = 0, nthreads = 0, nstarts = 0, nends = 0;
    double least = 1e9;
    json_array_foreach(events, index, event)
    {
        const char *phase = text_in(event, "ph");
        CHECK(json_is_integer(json_object_get(event, "pid")) &&
              json_is_integer(json_object_get(event, "tid")));
        nprocesses += phase[0] == 'M' && strcmp(text_in(event, "name"), "process_name") == 0;
        nthreads += phase[0] == 'M' && strcmp(text_in(event, "name"), "thread_name") == 0;
        if (phase[0] == 'M')
            continue;
        double ts = json_number_value(json_object_get(event, "ts"));
        CHECK(json_is_number(json_object_get(event, "ts")) && ts >= 0);
        if (phase[0] == 'X') {
            nspans++;
            least = fmin(least, ts);
            CHECK(json_number_value(json_object_get(event, "dur")) > 0);
            CHECK(json_integer_value(json_object_get(json_object_get(event, "args"), "rows")) == 64);
        } else {
            CHECK(json_is_integer(json_object_get(event, "id")));
            nstarts += phase[0] == 's';
            nends += phase[0] == 'f' && strcmp(text_in(event, "bp"), "e") == 0;
        }
    }
    CHECK_EQ_INT(nspans, 2 * 4 * 5 * 2);
    CHECK_EQ_INT(nprocesses, 2);
    CHECK_EQ_INT(nthreads, 4);
    CHECK_EQ_INT(nstarts, 2 * 4 * 5);
    CHECK_EQ_INT(nends, 2 * 4 * 5);
    CHECK(least <= 2.001); /* the clocks are aligned: nobody starts 250 us late */
    json_decref(root);
    sample_free(&sample);
}

/* Names from outside must not become markup, in any of the formats. */
static void test_escaping(void)
{
    static const char nasty[] = "</script><x y='\"&\n\x01 \xc3\xa4 \xff\xe2\x82";
    sample_t sample;
    size_t nbytes;
    sample_make(&sample, nasty, 1, rows, 5, false);
    sample.ranks[0].name = nasty;
    sample.trace.subtitle = nasty;
    CHECK(trace_write(&sample.trace, 1, nasty, path_of("b.json"), &error));
    json_t *root = load("b.json");
    CHECK_EQ_STR(text_in(json_object_get(root, "otherData"), "title"),
                 "</script><x y='\"&\n\x01 \xc3\xa4 ???");
    json_decref(root);

    CHECK(trace_write(&sample.trace, 1, nasty, path_of("b.html"), &error));
    char *page = slurp("b.html", &nbytes);
    int nends = 0;
    for (const char *at = page; (at = strstr(at, "</script>")) != NULL; at++)
        nends++;
    CHECK_EQ_INT(nends, 2); /* the data and the code, nothing else */
    CHECK(strstr(page, "<x y") == NULL);
    CHECK(strstr(page, "@DATA@") == NULL && strstr(page, "@TITLE@") == NULL &&
          strstr(page, "@SCRIPT@") == NULL);
    char *begin = strstr(page, "<script type=\"application/json\" id=\"data\">");
    CHECK(begin != NULL);
    if (begin != NULL) {
        begin = strchr(begin, '>') + 1;
        *strstr(begin, "</script>") = '\0';
        json_error_t problem;
        json_t *data = json_loads(begin, JSON_REJECT_DUPLICATES, &problem);
        CHECK(data != NULL);
        json_decref(data);
    }
    free(page);

    CHECK(trace_write(&sample.trace, 1, nasty, path_of("b.svg"), &error));
    page = slurp("b.svg", &nbytes);
    CHECK(strstr(page, "<x y") == NULL);
    CHECK_CONTAINS(page, "class=\"exposed\"");
    CHECK_CONTAINS(page, "class=\"hidden\"");
    CHECK_CONTAINS(page, "\xc3\xa4 ???");
    free(page);
    sample_free(&sample);
}

static void test_refused(void)
{
    sample_t sample;
    sample_make(&sample, "t", 4, rows, 5, false);
    int before = nfiles();
    CHECK(!trace_write(&sample.trace, 1, "t", path_of("c.txt"), &error));
    CHECK_CONTAINS(error.text, ".json, .html, .svg");
    CHECK(!trace_check_path("trace"));
    CHECK(trace_check_path("dir.d/trace.svg"));
    CHECK(!trace_write(&sample.trace, 1, "t", path_of("nowhere/c.json"), &error));
    CHECK_CONTAINS(error.text, "No such file");
    trace_t empty = {.title = "empty", .nranks = 0};
    CHECK(!trace_write(&empty, 1, "t", path_of("c.json"), &error));
    CHECK(!trace_write(&empty, 0, "t", path_of("c.json"), &error));
    CHECK_EQ_INT(nfiles(), before);

    /* an earlier file stays as it was when the new one cannot be written whole */
    static const char *const endings[] = {"d.json", "d.html", "d.svg"};
    for (int e = 0; e < 3; e++) {
        size_t nbytes, again;
        CHECK(trace_write(&sample.trace, 1, "older", path_of(endings[e]), &error));
        char *older = slurp(endings[e], &nbytes);
        struct rlimit limit, small;
        getrlimit(RLIMIT_FSIZE, &limit);
        small = limit;
        small.rlim_cur = 2000; /* as if the disk were full */
        setrlimit(RLIMIT_FSIZE, &small);
        CHECK(!trace_write(&sample.trace, 1, "newer", path_of(endings[e]), &error));
        setrlimit(RLIMIT_FSIZE, &limit);
        CHECK_CONTAINS(error.text, "cannot write");
        char *newer = slurp(endings[e], &again);
        CHECK(nbytes == again && memcmp(older, newer, nbytes) == 0);
        free(older);
        free(newer);
    }
    CHECK_EQ_INT(nfiles(), before + 3);
    sample_free(&sample);
}

static void test_arrivals(void)
{
    sample_t sample;
    sample_make(&sample, "t", 2, rows, 5, false);
    double *arrival_us = calloc(sample.nspans, sizeof *arrival_us);
    CHECK(trace_arrivals(&sample.trace, 0, arrival_us));
    for (size_t i = 0; i < sample.nspans; i++) {
        double expected = 0;
        if (sample.spans[0][i].kind == STARLIN_REPORT_COLLECTIVE)
            expected = fmax(sample.spans[0][i].start_us, sample.spans[1][i].start_us - 250);
        CHECK(arrival_us[i] == expected);
    }
    sample.ranks[1].nspans -= 1; /* the last collective of the other rank is not known */
    CHECK(trace_arrivals(&sample.trace, 0, arrival_us));
    CHECK(arrival_us[sample.nspans - 1] == 0 && arrival_us[sample.nspans - 3] > 0);
    free(arrival_us);
    sample_free(&sample);
}

static void test_many(void)
{
    static const char *const names[] = {"big.json", "big.html", "big.svg"};
    double begin_us = perf_now_us();
    sample_t samples[2];
    size_t nbytes;
    sample_make(&samples[0], "many", 500, rows, 5, false);
    sample_make(&samples[1], "more", 500, rows, 5, true);
    printf("2 x 10,000 spans made up: %.0f ms\n", (perf_now_us() - begin_us) / 1e3);
    trace_t traces[] = {samples[0].trace, samples[1].trace};
    for (int i = 0; i < 3; i++) {
        begin_us = perf_now_us();
        CHECK(trace_write(traces, 1, "many", path_of(names[i]), &error));
        printf("%s, 10,000 spans: %.0f ms\n", names[i], (perf_now_us() - begin_us) / 1e3);
    }
    CHECK(trace_write(traces, 2, "many", path_of("two.json"), &error));
    json_t *root = load("two.json");
    CHECK_EQ_INT(json_array_size(json_object_get(root, "traceEvents")), 2 * (10000 + 2 * 5000) + 2 * 2 * 6);
    json_decref(root);
    CHECK(trace_write(traces, 2, "many", path_of("two.svg"), &error));
    char *figure = slurp("two.svg", &nbytes);
    CHECK_CONTAINS(figure, ">more</text>");
    free(figure);
    for (int i = 0; i < 2; i++)
        sample_free(&samples[i]);
}

int main(void)
{
    signal(SIGXFSZ, SIG_IGN);
    if (mkdtemp(directory) == NULL)
        return 1;
    test_json();
    test_escaping();
    test_refused();
    test_arrivals();
    test_many();
    for (DIR *dir = opendir(directory); dir != NULL; closedir(dir), dir = NULL)
        for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
            unlink(path_of(entry->d_name));
    CHECK_EQ_INT(rmdir(directory), 0);
    return CHECK_RESULT();
}
