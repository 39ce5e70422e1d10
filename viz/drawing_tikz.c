/* drawing_tikz.c - writes a drawing as a picture for LaTeX with tikz; see drawing.h.
 *
 * The document needs \usepackage{tikz} and no other package, and pdflatex prints it. ASCII that
 * means something to TeX is escaped, ligatures are broken, letters with accents are composed,
 * so neither an encoding nor a font has to be chosen, and the fonts of any TeX do (no TS1).
 * Any other character gets its stand-in of safe.h, <U+HEX>.
 */
#include "viz/drawing.h"

#include <string.h>
#include <utf8proc.h>

#include "viz/safe.h"

/* ------------------------------------------------------------------ characters */

static const struct {
    int character;
    const char *latex;
} special[] = {
    {'%', "\\%"},
    {'#', "\\#"},
    {'_', "\\_"},
    {'&', "\\&"},
    {'$', "\\symbol{36}"},
    {'{', "\\{"},
    {'}', "\\}"},
    {'\\', "\\textbackslash{}"},
    {'~', "\\textasciitilde{}"},
    {'^', "\\textasciicircum{}"},
    {'<', "\\textless{}"},
    {'>', "\\textgreater{}"},
    {'|', "\\textbar{}"},
    {'"', "\\symbol{34}"}, /* a letter of its own with babel */
    {'\'', "\\symbol{39}"},
    {'`', "\\symbol{96}"},
    {'-', "-{}"},
    {',', ",{}"},
    {'!', "!{}"},
    {'?', "?{}"},
    {0xa0, "~"},
    {0xb7, "\\ensuremath{\\cdot}"},
    {0xd7, "\\ensuremath{\\times}"},
    {0xdf, "\\ss{}"},
    {0xe6, "\\ae{}"},
    {0xc6, "\\AE{}"},
    {0xf8, "\\o{}"},
    {0xd8, "\\O{}"},
    {0x131, "\\i{}"},
    {0x152, "\\OE{}"},
    {0x153, "\\oe{}"},
    {0x2013, "\\textendash{}"},
    {0x2014, "\\textemdash{}"},
    {0x2018, "\\textquoteleft{}"},
    {0x2019, "\\textquoteright{}"},
    {0x201c, "\\textquotedblleft{}"},
    {0x201d, "\\textquotedblright{}"},
    {0x2022, "\\ensuremath{\\bullet}"},
    {0x2026, "\\ldots{}"},
    {0x2190, "\\ensuremath{\\leftarrow}"},
    {0x2192, "\\ensuremath{\\rightarrow}"},
    {0x2423, "\\textvisiblespace{}"},
};

static const char *find_special(int character)
{
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        if (special[i].character == character)
            return special[i].latex;
    return NULL;
}

/* Takes a letter with one accent apart; returns the command of the accent, or NULL. */
static const char *find_accent(int character, int *letter)
{
    static const struct {
        int mark;
        const char *command;
    } accents[] = {{0x300, "\\`"}, {0x301, "\\'"}, {0x302, "\\^"}, {0x303, "\\~"},
                   {0x304, "\\="}, {0x306, "\\u"}, {0x307, "\\."}, {0x308, "\\\""},
                   {0x30a, "\\r"}, {0x30b, "\\H"}, {0x30c, "\\v"}, {0x327, "\\c"}};
    utf8proc_int32_t parts[8];
    if (utf8proc_decompose_char(character, parts, 8, UTF8PROC_DECOMPOSE, NULL) != 2 ||
        parts[0] >= 0x80)
        return NULL;
    *letter = (int)parts[0];
    for (size_t i = 0; i < sizeof accents / sizeof *accents; i++)
        if (accents[i].mark == parts[1])
            return accents[i].command;
    return NULL;
}

bool esp_latex_prints(int character)
{
    int letter;
    return (character >= 0x20 && character < 0x7f) || find_special(character) ||
           find_accent(character, &letter);
}

static void put_character(int c, FILE *file)
{
    int letter;
    const char *latex = find_special(c), *accent = find_accent(c, &letter);
    if (latex)
        fputs(latex, file);
    else if (accent)
        fprintf(file, "%s{%c}", accent, letter);
    else if (c < 0x80)
        putc(c, file);
    else
        fprintf(file, "\\textless{}U+%04X\\textgreater{}", (unsigned)c);
}

/* A blank at an end, or behind another, is one that TeX keeps. */
static void put_text(const char *text, FILE *file)
{
    struct esp_safe_unit shown;
    bool kept = true;
    for (size_t left = strlen(text), taken; left > 0; text += taken, left -= taken) {
        taken = esp_safe_next(text, left, 0, &shown);
        const utf8proc_uint8_t *at = (const utf8proc_uint8_t *)shown.text;
        utf8proc_int32_t c;
        for (utf8proc_ssize_t n; *at && (n = utf8proc_iterate(at, -1, &c)) > 0; at += n) {
            if (c == ' ' && (kept || taken == left))
                fputs("\\ ", file);
            else
                put_character((int)c, file);
            kept = c == ' ';
        }
    }
}

/* ------------------------------------------------------------------ shapes */

enum { DEFINED = 64 };

/* The colours that were defined last. */
struct colours {
    char defined[DEFINED][8];
    size_t count;
};

/* Defines "#1a7f3c" as esp1a7f3c, which is how it is called from here on. */
static void define(struct colours *colours, const char *colour, FILE *file)
{
    for (size_t i = 0; i < colours->count && i < DEFINED; i++)
        if (strcmp(colours->defined[i], colour) == 0)
            return;
    snprintf(colours->defined[colours->count++ % DEFINED], 8, "%s", colour);
    fprintf(file, "\\definecolor{esp%s}{HTML}{", colour + 1);
    for (const char *c = colour + 1; *c; c++)
        putc(*c >= 'a' && *c <= 'f' ? *c - 'a' + 'A' : *c, file);
    fputs("}\n", file);
}

/* "6 4" as "on 6bp off 4bp". */
static void put_dashes(const char *dashes, FILE *file)
{
    fputs(",dash pattern=", file);
    for (int i = 0; *dashes; i++) {
        const size_t length = strcspn(dashes, " ");
        fprintf(file, "%s%s %.*sbp", i ? " " : "", i % 2 ? "off" : "on", (int)length, dashes);
        dashes += length;
        dashes += strspn(dashes, " ");
    }
}

static void begin_shape(const struct esp_drawing_shape *shape, FILE *file)
{
    fputs("\\path[", file);
    if (*shape->fill)
        fprintf(file, "fill=esp%s", shape->fill + 1);
    if (*shape->stroke)
        fprintf(file, "%sdraw=esp%s,line width=%.4gbp", *shape->fill ? "," : "",
                shape->stroke + 1, shape->line);
    if (*shape->stroke && shape->dashes)
        put_dashes(shape->dashes, file);
    if (shape->round > 0)
        fprintf(file, ",rounded corners=%.1fbp", shape->round);
    fputs("] ", file);
}

static void put_label(const struct esp_drawing *d, const struct esp_drawing_shape *shape,
                      FILE *file)
{
    static const char *const anchors[] = {"base west", "base", "base east"};
    const bool mono = shape->flags & ESP_TEXT_MONO;
    fprintf(file, "\\node[inner sep=0pt,outer sep=0pt,anchor=%s,text=esp%s",
            anchors[shape->anchor], shape->fill + 1);
    if (shape->flags & ESP_TEXT_UPWARDS)
        fputs(",rotate=90", file);
    fprintf(file, "] at (%.2f,%.2f) {\\fontsize{%d}{%d}\\selectfont%s%s ", shape->x, shape->y,
            shape->size, shape->size * 6 / 5, mono ? "\\ttfamily" : "\\sffamily",
            shape->flags & ESP_TEXT_BOLD ? "\\bfseries" : "");
    if (mono)
        fprintf(file, "\\resizebox{%.2fbp}{!}{", shape->width);
    put_text(d->bytes + shape->start, file);
    fputs(mono ? "}};\n" : "};\n", file);
}

static void put_path(const struct esp_drawing *d, const struct esp_drawing_shape *shape,
                     FILE *file)
{
    begin_shape(shape, file);
    for (size_t i = 0; i < shape->count; i++) {
        const double *point = d->points + 2 * (shape->start + i);
        fprintf(file, "%s(%.2f,%.2f)", i ? "--" : "", point[0], point[1]);
    }
    fputs(shape->closed ? "--cycle;\n" : ";\n", file);
}

static void put_shape(const struct esp_drawing *d, const struct esp_drawing_shape *shape,
                      FILE *file)
{
    switch (shape->type) {
    case ESP_SHAPE_PATH:
        put_path(d, shape, file);
        break;
    case ESP_SHAPE_RECT:
        begin_shape(shape, file);
        fprintf(file, "(%.2f,%.2f) rectangle (%.2f,%.2f);\n", shape->x, shape->y,
                shape->x + shape->width, shape->y + shape->height);
        break;
    case ESP_SHAPE_CIRCLE:
        begin_shape(shape, file);
        fprintf(file, "(%.2f,%.2f) circle[radius=%.2fbp];\n", shape->x, shape->y, shape->width);
        break;
    default:
        put_label(d, shape, file);
    }
}

void esp_drawing_tikz(const struct esp_drawing *d, FILE *file)
{
    struct colours colours = {.count = 0};
    fprintf(file,
            "%% A figure of espalier, %.0f x %.0f bp: \\usepackage{tikz}, then \\input this "
            "file.\n"
            "\\begingroup\n"
            "\\begin{tikzpicture}[x=1bp,y=-1bp]\n",
            d->width, d->height);
    define(&colours, d->background, file);
    fprintf(file, "\\path[fill=esp%s] (0,0) rectangle (%.2f,%.2f);\n", d->background + 1,
            d->width, d->height);
    for (size_t i = 0; i < d->count; i++) {
        const struct esp_drawing_shape *shape = &d->shapes[i];
        if (*shape->fill)
            define(&colours, shape->fill, file);
        if (*shape->stroke)
            define(&colours, shape->stroke, file);
        put_shape(d, shape, file);
    }
    fputs("\\end{tikzpicture}%\n\\endgroup\n", file);
}
