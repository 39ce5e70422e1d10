/* drawing_tikz.c - writes a drawing as a picture for LaTeX with tikz; see drawing.h.
 *
 * The document needs \usepackage{tikz} and no other package, and pdflatex typesets it. ASCII
 * characters with a meaning in TeX are escaped, ligatures are broken up, and accented letters
 * are composed of a letter and an accent. So the document need not choose an encoding or a
 * font, and the fonts of any TeX installation suffice (no TS1). safe.h replaces any other
 * character by <U+HEX>.
 */
#include "viz/drawing_backend.h"

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
    {'"', "\\symbol{34}"}, /* babel makes it an active character in some languages */
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

/* Splits an accented letter into *letter and an accent. Returns the TeX command for the accent,
 * or NULL. */
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

/* Writes text. TeX would drop blanks at both ends and repeated blanks, so they are escaped. */
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

static void put_colour(const char *colour, FILE *file)
{
    fprintf(file, "\\definecolor{esp%s}{HTML}{", colour + 1);
    for (const char *c = colour + 1; *c; c++)
        putc(*c >= 'a' && *c <= 'f' ? *c - 'a' + 'A' : *c, file);
    fputs("}\n", file);
}

/* Defines a colour such as "#1a7f3c" with the name esp1a7f3c, if it is not defined yet. The
 * background is the first colour that is defined. */
static void define(struct esp_drawing *d, const char *colour)
{
    enum { DEFINED = sizeof d->defined / sizeof *d->defined };
    if (d->defined_count == 0)
        snprintf(d->defined[d->defined_count++], 8, "%s", d->background);
    for (size_t i = 0; i < d->defined_count && i < DEFINED; i++)
        if (strcmp(d->defined[i], colour) == 0)
            return;
    snprintf(d->defined[d->defined_count++ % DEFINED], 8, "%s", colour);
    put_colour(colour, d->body);
}

/* Writes a dash pattern: "6 4" becomes "on 6bp off 4bp". */
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

static FILE *begin_shape(struct esp_drawing *d, const struct esp_pen *pen, double round)
{
    FILE *file = d->body;
    if (pen->fill)
        define(d, pen->fill);
    if (pen->stroke)
        define(d, pen->stroke);
    fputs("\\path[", file);
    if (pen->fill)
        fprintf(file, "fill=esp%s", pen->fill + 1);
    if (pen->stroke)
        fprintf(file, "%sdraw=esp%s,line width=%.4gbp", pen->fill ? "," : "", pen->stroke + 1,
                esp_pen_width(pen));
    if (pen->stroke && pen->dashes)
        put_dashes(pen->dashes, file);
    if (round > 0)
        fprintf(file, ",rounded corners=%.1fbp", round);
    fputs("] ", file);
    return file;
}

static void put_path(struct esp_drawing *d, const struct esp_pen *pen, const double *points,
                     int count, bool closed)
{
    FILE *file = begin_shape(d, pen, 0);
    for (int i = 0; i < count; i++)
        fprintf(file, "%s(%.2f,%.2f)", i ? "--" : "", points[2 * i], points[2 * i + 1]);
    fputs(closed ? "--cycle;\n" : ";\n", file);
}

static void put_rect(struct esp_drawing *d, const struct esp_pen *pen, double x, double y,
                     double width, double height, double round)
{
    fprintf(begin_shape(d, pen, round), "(%.2f,%.2f) rectangle (%.2f,%.2f);\n", x, y, x + width,
            y + height);
}

static void put_circle(struct esp_drawing *d, const struct esp_pen *pen, double x, double y,
                       double radius)
{
    fprintf(begin_shape(d, pen, 0), "(%.2f,%.2f) circle[radius=%.2fbp];\n", x, y, radius);
}

static void put_label(struct esp_drawing *d, double x, double y, double width, int size,
                      int anchor, int flags, const char *colour, const char *text)
{
    static const char *const anchors[] = {"base west", "base", "base east"};
    const bool mono = flags & ESP_TEXT_MONO;
    FILE *file = d->body;
    define(d, colour);
    fprintf(file, "\\node[inner sep=0pt,outer sep=0pt,anchor=%s,text=esp%s", anchors[anchor],
            colour + 1);
    if (flags & ESP_TEXT_UPWARDS)
        fputs(",rotate=90", file);
    fprintf(file, "] at (%.2f,%.2f) {\\fontsize{%d}{%d}\\selectfont%s%s ", x, y, size,
            size * 6 / 5, mono ? "\\ttfamily" : "\\sffamily",
            flags & ESP_TEXT_BOLD ? "\\bfseries" : "");
    if (mono)
        fprintf(file, "\\resizebox{%.2fbp}{!}{", width);
    put_text(text, file);
    fputs(mono ? "}};\n" : "};\n", file);
}

static void begin(const struct esp_drawing *d, FILE *file)
{
    fprintf(file,
            "%% A figure of espalier, %.0f x %.0f bp: \\usepackage{tikz}, then \\input this "
            "file.\n"
            "\\begingroup\n"
            "\\begin{tikzpicture}[x=1bp,y=-1bp]\n",
            d->width, d->height);
    put_colour(d->background, file);
    fprintf(file, "\\path[fill=esp%s] (0,0) rectangle (%.2f,%.2f);\n", d->background + 1,
            d->width, d->height);
}

const struct esp_drawing_backend esp_drawing_tikz = {
    begin, put_path, put_rect, put_circle, put_label, "\\end{tikzpicture}%\n\\endgroup\n"};
