/* main.c: the relax command: one table of sub-commands. */
#include "tools/tools.h"
#include <string.h>

static const struct { const char *name; int (*run)(int argc, char **argv); const char *use, *doc; } commands[] = {
    { "chat", cmd_chat, "MODEL.gguf [-p TEXT]", "compile a model if needed and talk to it" },
    { "run", cmd_run, "MODEL.rlx --weights MODEL.gguf -p TEXT", "generate with a compiled model" },
    { "build", cmd_build, "MODEL.gguf|MODULE.txt -o OUT.rlx", "compile a model or a module in text form" },
    { "opt", cmd_opt, "MODULE.txt --passes LIST", "run passes over a module and print it" },
    { "info", cmd_info, "FILE.rlx|FILE.gguf|FILE.safetensors", "what a file holds" },
    { "tokenize", cmd_tokenize, "MODEL.gguf < strings.jsonl", "JSON strings to JSON id lists, a line each" },
    { "bench", cmd_bench, "MODEL.gguf", "prompt and generation speed" },
};
enum { NCOMMANDS = sizeof commands / sizeof commands[0] };

static int usage(FILE *f, int code)
{
    fprintf(f, "relax %s: an ahead-of-time compiler for models with symbolic shapes\n\n", relax_version_string());
    for (int i = 0; i < NCOMMANDS; i++)
        fprintf(f, "  relax %-9s %-42s %s\n", commands[i].name, commands[i].use, commands[i].doc);
    fprintf(f, "\nrelax COMMAND --help prints the options of a command. Exit codes: 0 done, 1 failed, 2 wrong use, 130 "
               "interrupted.\n");
    return code;
}

int main(int argc, char **argv)
{
    if (argc < 2) return usage(stderr, EXIT_USAGE);
    if (!strcmp(argv[1], "--version")) {
        printf("relax %s\n", relax_version_string());
        return EXIT_OK;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) return usage(stdout, EXIT_OK);
    for (int i = 0; i < NCOMMANDS; i++)
        if (!strcmp(argv[1], commands[i].name)) return commands[i].run(argc - 2, argv + 2);
    fprintf(stderr, "relax: no command is named '%s'\n\n", argv[1]);
    return usage(stderr, EXIT_USAGE);
}
