/* SPDX-License-Identifier: BSD-3-Clause */
/* Traces: the JSON is what Perfetto reads, text is escaped, a file is complete or not there. */
#define _GNU_SOURCE
#include <dirent.h>
#include <jansson.h>
#include <unistd.h>

#include "check.h"
#include "trace_sample.h"

static const int64_t rows[] = {64, 64, 64, 64, 64};
static char directory[] = "/tmp/starlin-trace-XXXXXX";
static char path_buffer[512];

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
    json_error_t error;
    json_t *root = json_load_file(path_of(name), JSON_REJECT_DUPLICATES, &error);
    check_count++;
    if (root == NULL)
        CHECK_FAIL("%s: %s at line %d", name, error.text, error.line);
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
    CHECK_STATUS(starlin__trace_write(&sample.trace, 1, "A \"title\" <b>", path_of("a.json")),
                 STARLIN_SUCCESS);
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
    CHECK_STATUS(starlin__trace_write(&sample.trace, 1, nasty, path_of("b.json")), STARLIN_SUCCESS);
    json_t *root = load("b.json");
    CHECK_EQ_STR(text_in(json_object_get(root, "otherData"), "title"),
                 "</script><x y='\"&\n\x01 \xc3\xa4 ???");
    json_decref(root);

    CHECK_STATUS(starlin__trace_write(&sample.trace, 1, nasty, path_of("b.html")), STARLIN_SUCCESS);
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
        json_error_t error;
        json_t *data = json_loads(begin, JSON_REJECT_DUPLICATES, &error);
        CHECK(data != NULL);
        json_decref(data);
    }
    free(page);

    CHECK_STATUS(starlin__trace_write(&sample.trace, 1, nasty, path_of("b.svg")), STARLIN_SUCCESS);
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
    CHECK_STATUS(starlin__trace_write(&sample.trace, 1, "t", path_of("c.txt")), STARLIN_ERR_INVALID);
    CHECK_CONTAINS(starlin_last_error(), ".json, .html, .svg");
    CHECK_STATUS(starlin__trace_check_path("trace"), STARLIN_ERR_INVALID);
    CHECK_STATUS(starlin__trace_check_path("dir.d/trace.svg"), STARLIN_SUCCESS);
    CHECK_STATUS(starlin__trace_write(&sample.trace, 1, "t", path_of("nowhere/c.json")), STARLIN_ERR_INVALID);
    CHECK_CONTAINS(starlin_last_error(), "No such file");
    starlin__trace_t empty = {.title = "empty", .nranks = 0};
    CHECK_STATUS(starlin__trace_write(&empty, 1, "t", path_of("c.json")), STARLIN_ERR_INVALID);
    CHECK_STATUS(starlin__trace_write(&empty, 0, "t", path_of("c.json")), STARLIN_ERR_INVALID);
    CHECK_EQ_INT(nfiles(), before);

    /* an earlier file stays as it was when the new one cannot take its place */
    CHECK_EQ_INT(symlink("/dev/full", path_of("full")), 0);
    starlin__sink_t sink = {.file = fopen(path_of("full"), "w")};
    CHECK_STATUS(starlin__trace_write_json(&sink, &sample.trace, 1, "t"), STARLIN_SUCCESS);
    CHECK(fflush(sink.file) != 0 || sink.failed != 0);
    fclose(sink.file);
    CHECK(sink.failed != 0); /* 40 spans are more than one buffer */
    unlink(path_of("full"));

    const char *endings[] = {"d.json", "d.html", "d.svg"};
    for (int e = 0; e < 3; e++)
        for (uint64_t i = 1; i < 50; i++) {
            starlin__alloc_fail_at = starlin__alloc_count + i;
            starlin_status_t status = starlin__trace_write(&sample.trace, 1, "t", path_of(endings[e]));
            starlin__alloc_fail_at = 0;
            if (status == STARLIN_SUCCESS)
                break;
            CHECK_STATUS(status, STARLIN_ERR_NO_MEMORY);
            CHECK_EQ_INT(nfiles(), before + e);
        }
    CHECK_EQ_INT(nfiles(), before + 3);
    sample_free(&sample);
}

static void test_arrivals(void)
{
    sample_t sample;
    sample_make(&sample, "t", 2, rows, 5, false);
    double *arrival_us = calloc(sample.nspans, sizeof *arrival_us);
    CHECK_STATUS(starlin__trace_arrivals(&sample.trace, 0, arrival_us), STARLIN_SUCCESS);
    for (size_t i = 0; i < sample.nspans; i++) {
        double expected = 0;
        if (sample.spans[0][i].kind == STARLIN__SPAN_ALLREDUCE)
            expected = fmax(sample.spans[0][i].start_us, sample.spans[1][i].start_us - 250);
        CHECK(arrival_us[i] == expected);
    }
    sample.ranks[1].nspans -= 1; /* the last collective of the other rank is not known */
    CHECK_STATUS(starlin__trace_arrivals(&sample.trace, 0, arrival_us), STARLIN_SUCCESS);
    CHECK(arrival_us[sample.nspans - 1] == 0 && arrival_us[sample.nspans - 3] > 0);
    free(arrival_us);
    sample_free(&sample);
}

static void test_many(void)
{
    static const char *const names[] = {"big.json", "big.html", "big.svg"};
    double begin_us = starlin__now_us();
    sample_t samples[2];
    size_t nbytes;
    sample_make(&samples[0], "many", 500, rows, 5, false);
    sample_make(&samples[1], "more", 500, rows, 5, true);
    printf("reports of 2 x 5,000 spans: %.0f ms\n", (starlin__now_us() - begin_us) / 1e3);
    starlin__trace_t traces[] = {samples[0].trace, samples[1].trace};
    for (int i = 0; i < 3; i++) {
        begin_us = starlin__now_us();
        CHECK_STATUS(starlin__trace_write(traces, 1, "many", path_of(names[i])), STARLIN_SUCCESS);
        printf("%s, 10,000 spans: %.0f ms\n", names[i], (starlin__now_us() - begin_us) / 1e3);
    }
    CHECK_STATUS(starlin__trace_write(traces, 2, "many", path_of("two.json")), STARLIN_SUCCESS);
    json_t *root = load("two.json");
    CHECK_EQ_INT(json_array_size(json_object_get(root, "traceEvents")), 2 * (10000 + 2 * 5000) + 2 * 2 * 6);
    json_decref(root);
    CHECK_STATUS(starlin__trace_write(traces, 2, "many", path_of("two.svg")), STARLIN_SUCCESS);
    char *figure = slurp("two.svg", &nbytes);
    CHECK_CONTAINS(figure, ">more</text>");
    free(figure);
    for (int i = 0; i < 2; i++)
        sample_free(&samples[i]);
}

int main(void)
{
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
