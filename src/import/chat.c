/* chat.c: renders messages as the known families of chat templates do.
 *
 * A GGUF file carries its template as a Jinja program. It is not run here: its text is only searched for the markers of
 * chat.def. Output: text with control markers, as the family's Jinja template gives it for plain messages (no
 * tools). The begin-of-text token is the tokenizer's business and is left out.
 * Traps: a family may insert a system prompt when there is none (qwen, smollm2); llama3's later templates put dates
 * into the system prompt, which is left out here; gemma and llama2 have no system turn and put it into the first user
 * turn. */
#include "import/import.h"

typedef struct family { const char *name, *marker, *second; } family;
static const family families[RX_CHAT_FAMILIES] = {
#define X(id, name, marker, second) [RX_CHAT_##id] = {name, marker, second},
#include "import/chat.def"
#undef X
};

rx_chat_family rx_chat_find(const char *name, size_t n)
{
    for (int f = RX_CHAT_NONE + 1; f < RX_CHAT_FAMILIES; f++)
        if (rx_view_is((rx_view){name, n}, families[f].name))
            return (rx_chat_family)f;
    return RX_CHAT_NONE;
}

const char *rx_chat_name(rx_chat_family f)
{
    return f > RX_CHAT_NONE && f < RX_CHAT_FAMILIES ? families[f].name : "none";
}

static bool contains(rx_view text, const char *what)
{
    size_t n = strlen(what);
    for (size_t i = 0; n <= text.n && i <= text.n - n; i++)
        if (memcmp(text.at + i, what, n) == 0)
            return true;
    return n == 0;
}

rx_chat_family rx_chat_detect(relax_context *ctx, rx_view jinja)
{
    for (int f = RX_CHAT_NONE + 1; f < RX_CHAT_FAMILIES; f++)
        if (contains(jinja, families[f].marker) && contains(jinja, families[f].second))
            return (rx_chat_family)f;
    rx_fail_hint(ctx, RXE_UNSUPPORTED, NULL,
                 "render the prompt outside (the Python package runs the Jinja template), or name a family",
                 jinja.n ? "the model's chat template is of no known family" : "the model has no chat template");
}

typedef enum role { ROLE_SYSTEM, ROLE_USER, ROLE_ASSISTANT } role;

static role role_of(relax_context *ctx, const rx_chat_message *m, rx_chat_family f)
{
    static const char *const names[] = {"system", "user", "assistant"};
    for (int r = 0; r < 3; r++)
        if (rx_view_is(m->role, names[r]))
            return (role)r;
    rx_fail(ctx, RXE_BAD_VALUE, NULL, "the chat family %s has no role '%.*s'", rx_chat_name(f),
            (int)RX_MIN(m->role.n, 64), m->role.at);
}

static void put(rx_buf *out, rx_view v)
{
    rx_putn(out, v.at, v.n);
}

/* without white space at both ends, as Jinja's trim does for ASCII */
static void put_trimmed(rx_buf *out, rx_view v)
{
    static const char space[] = " \t\n\v\f\r";
    while (v.n && memchr(space, v.at[0], sizeof space - 1))
        v.at++, v.n--;
    while (v.n && memchr(space, v.at[v.n - 1], sizeof space - 1))
        v.n--;
    put(out, v);
}

static const char *default_system(rx_chat_family f)
{
    switch (f) {
    case RX_CHAT_QWEN2_5: return "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.";
    case RX_CHAT_QWEN2: return "You are a helpful assistant.";
    case RX_CHAT_SMOLLM2: return "You are a helpful AI assistant named SmolLM, trained by Hugging Face";
    default: return NULL;
    }
}

/* Families whose turns are all alike: open, role, between, content, close. */
typedef struct turn_form { const char *open, *mid, *close; bool trim; } turn_form;

static void uniform_turns(relax_context *ctx, rx_chat_family f, const turn_form *tf, const rx_chat_message *m, size_t n,
                          bool generate, rx_buf *out)
{
    const char *sys = default_system(f);
    if (sys && (n == 0 || role_of(ctx, &m[0], f) != ROLE_SYSTEM)) {
        rx_puts(out, tf->open);
        rx_puts(out, "system");
        rx_puts(out, tf->mid);
        rx_puts(out, sys);
        rx_puts(out, tf->close);
    }
    for (size_t i = 0; i < n; i++) {
        role_of(ctx, &m[i], f);
        rx_puts(out, tf->open);
        put(out, m[i].role);
        rx_puts(out, tf->mid);
        (tf->trim ? put_trimmed : put)(out, m[i].content);
        rx_puts(out, tf->close);
    }
    if (generate) {
        rx_puts(out, tf->open);
        rx_puts(out, "assistant");
        rx_puts(out, tf->mid);
    }
}

static void gemma_turns(relax_context *ctx, const rx_chat_message *m, size_t n, bool generate, rx_buf *out)
{
    const rx_chat_message *sys = n && role_of(ctx, &m[0], RX_CHAT_GEMMA) == ROLE_SYSTEM ? &m[0] : NULL;
    for (size_t i = sys ? 1 : 0; i < n; i++) {
        role r = role_of(ctx, &m[i], RX_CHAT_GEMMA);
        if (r == ROLE_SYSTEM)
            rx_fail(ctx, RXE_BAD_VALUE, NULL, "the chat family gemma takes a system message only in front");
        rx_puts(out, r == ROLE_USER ? "<start_of_turn>user\n" : "<start_of_turn>model\n");
        if (sys && i == 1) {
            put(out, sys->content);
            rx_puts(out, "\n\n");
        }
        put_trimmed(out, m[i].content);
        rx_puts(out, "<end_of_turn>\n");
    }
    if (generate)
        rx_puts(out, "<start_of_turn>model\n");
}

static void llama2_turns(relax_context *ctx, const rx_chat_message *m, size_t n, rx_view eos, rx_buf *out)
{
    const rx_chat_message *sys = n && role_of(ctx, &m[0], RX_CHAT_LLAMA2) == ROLE_SYSTEM ? &m[0] : NULL;
    bool first = true;
    for (size_t i = sys ? 1 : 0; i < n; i++) {
        role r = role_of(ctx, &m[i], RX_CHAT_LLAMA2);
        if (r == ROLE_SYSTEM)
            rx_fail(ctx, RXE_BAD_VALUE, NULL, "the chat family llama2 takes a system message only in front");
        if (r == ROLE_ASSISTANT) {
            rx_putc(out, ' ');
            put_trimmed(out, m[i].content);
            rx_putc(out, ' ');
            put(out, eos);
            continue;
        }
        rx_puts(out, first ? "[INST] " : "<s>[INST] ");
        if (sys && first) {
            rx_puts(out, "<<SYS>>\n");
            put(out, sys->content);
            rx_puts(out, "\n<</SYS>>\n\n");
        }
        put_trimmed(out, m[i].content);
        rx_puts(out, " [/INST]");
        first = false;
    }
}

void rx_chat_render(relax_context *ctx, rx_chat_family f, const rx_chat_message *m, size_t n, rx_view eos,
                    bool generate, rx_buf *out)
{
    if (eos.n == 0)
        eos = (rx_view){"</s>", 4};
    turn_form tf = {0};
    switch (f) {
    case RX_CHAT_QWEN2_5:
    case RX_CHAT_QWEN2:
    case RX_CHAT_SMOLLM2:
    case RX_CHAT_CHATML: tf = (turn_form){"<|im_start|>", "\n", "<|im_end|>\n", false}; break;
    case RX_CHAT_LLAMA3: tf = (turn_form){"<|start_header_id|>", "<|end_header_id|>\n\n", "<|eot_id|>", true}; break;
    case RX_CHAT_PHI3: tf = (turn_form){"<|", "|>\n", "<|end|>\n", false}; break;
    case RX_CHAT_ZEPHYR: {
        rx_buf close;
        rx_buf_init(&close, rx_scratch(&ctx->heap));
        put(&close, eos);
        rx_putc(&close, '\n');
        tf = (turn_form){"<|", "|>\n", close.at, false};
        break;
    }
    case RX_CHAT_GEMMA: gemma_turns(ctx, m, n, generate, out); return;
    case RX_CHAT_LLAMA2: llama2_turns(ctx, m, n, eos, out); return;
    default: rx_fail(ctx, RXE_BAD_VALUE, NULL, "no chat family with the number %d", (int)f);
    }
    uniform_turns(ctx, f, &tf, m, n, generate, out);
}
