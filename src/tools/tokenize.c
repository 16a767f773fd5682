/* tokenize.c: JSON strings to JSON id lists, a line each; --detokenize the reverse. */
#include "tools/tools.h"
#include <stdlib.h>
#include <string.h>

static bool encode_line(relax_tokenizer *t, const options *o, const char *line)
{
    char *text;
    size_t n;
    if (!json_read_string(&line, &text, &n)) return false;
    int64_t k = relax_tokenizer_encode(t, text, n, 1, !o->nospecial, NULL, 0);
    int32_t *v = k < 0 ? NULL : malloc(((size_t)k + 1) * sizeof *v);
    if (v) relax_tokenizer_encode(t, text, n, 1, !o->nospecial, v, (size_t)k);
    if (v) printf("[");
    for (int64_t i = 0; v && i < k; i++) printf("%s%d", i ? ", " : "", v[i]);
    if (v) printf("]\n");
    free(text);
    free(v);
    return v != NULL;
}

static bool decode_line(relax_tokenizer *t, const char *line)
{
    int32_t *v;
    size_t n;
    if (!json_read_ints(line, &v, &n)) return false;
    int64_t k = relax_tokenizer_decode(t, v, n, 1, NULL, 0);
    char *text = k < 0 ? NULL : malloc((size_t)k + 1);
    if (text) {
        relax_tokenizer_decode(t, v, n, 1, text, (size_t)k + 1);
        json_string(stdout, text, (size_t)k);
        printf("\n");
    }
    free(v);
    free(text);
    return text != NULL;
}

static int lines(relax_context *ctx, relax_tokenizer *t, const options *o)
{
    char *line = NULL;
    size_t cap = 0, number = 0;
    int code = EXIT_OK;
    while (code == EXIT_OK && getline(&line, &cap, stdin) > 0) {
        number++;
        line[strcspn(line, "\n")] = 0;
        if (!*line) continue;
        if (o->detokenize ? decode_line(t, line) : encode_line(t, o, line)) continue;
        if (relax_diagnostic_count(ctx)) code = tool_fail(ctx, "tokenize");
        else {
            fprintf(stderr, "relax tokenize: line %zu is not a JSON %s\n", number,
                    o->detokenize ? "list of integers" : "string");
            code = EXIT_FAILED;
        }
    }
    free(line);
    return code;
}

int cmd_tokenize(int argc, char **argv)
{
    static const char allowed[] = "DNQ";
    options o;
    relax_weights *w = NULL;
    relax_tokenizer *t = NULL;
    if (!options_parse(&o, argc, argv, allowed)) return EXIT_USAGE;
    if (o.help) {
        fprintf(stderr, "relax tokenize MODEL.gguf < strings.jsonl: JSON strings to JSON id lists, a line each\n\n");
        options_help(allowed);
        return EXIT_OK;
    }
    if (o.ninputs != 1) return fprintf(stderr, "relax tokenize: one model file is expected\n"), EXIT_USAGE;
    relax_context *ctx = tool_context(&o);
    if (!ctx) return EXIT_FAILED;
    int code = relax_weights_open(ctx, o.inputs[0], &w) || relax_tokenizer_create(w, &t) ? tool_fail(ctx, o.inputs[0])
                                                                                         : lines(ctx, t, &o);
    relax_tokenizer_destroy(t);
    relax_weights_close(w);
    relax_context_destroy(ctx);
    return code;
}
