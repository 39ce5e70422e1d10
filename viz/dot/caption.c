/* caption.c - writes the caption above the tree and the legend below it; see picture.h. */
#include "viz/dot/picture.h"

#include <math.h>
#include <string.h>

#include "viz/chart.h"
#include "viz/decision.h"
#include "viz/dot/label.h"
#include "viz/formula.h"
#include "viz/gauges.h"
#include "viz/say.h"

enum { TITLE = 20, LINE = 13, LEGEND = 12 };

static const char gap[] = "&#160;&#160;&#160;&#160;";

/* Writes "8 tokens drafted, 3 of them copied from the text". If all tokens have the same
 * source, names this source instead. */
static void put_sources(FILE *file, int all, const int count[ESP_SOURCES])
{
    int only = ESP_SOURCE_DRAFT;
    for (int i = 0; i < ESP_SOURCES; i++)
        only = all > 0 && count[i] == all ? i : only;
    fprintf(file, "%d token%s %s", all, esp_plural(all),
            only == ESP_SOURCE_DRAFT ? "drafted" : esp_source_text(only));
    for (int i = ESP_SOURCE_DRAFT + 1; i < ESP_SOURCES; i++)
        if (i != only && count[i] > 0)
            fprintf(file, ", %d of them %s", count[i], esp_source_text(i));
}

static void put_title(FILE *file, const struct esp_iteration *it,
                      const struct esp_colours *colours)
{
    int drafted = it->tree.count - 1, cut = 0, count[ESP_SOURCES];
    for (int i = 1; i < it->tree.count; i++)
        cut += it->tree.nodes[i].verdict == ESP_CUT;
    esp_count_sources(it, count);
    esp_label_row(file, TITLE, colours->text);
    fprintf(file, "<b>Iteration %d: %d token%s committed in ", it->index, it->committed_count,
            esp_plural(it->committed_count));
    fprintf(file,
            it->target_passes > 1 ? "%d passes of the target</b>"
                                  : "one pass of the target</b>",
            it->target_passes);
    esp_label_row_end(file);
    esp_label_row(file, LINE, colours->text);
    put_sources(file, drafted, count);
    if (cut > 0)
        fprintf(file, ", %d cut, %d verified", cut, drafted - cut);
    fprintf(file, ", %d accepted", it->path_length);
    if (it->committed_count > it->path_length)
        fputs("; then one from the target itself", file);
    esp_label_row_end(file);
}

/* Writes "draft <b>.51</b> ms" and a gap. The gap is at the end, because text must not begin
 * with a blank (label.h). */
static void put_fact(FILE *file, const char *before, const char *value, const char *after)
{
    fprintf(file, "%s <b>%s%s</b>%s%s", before, value, *after ? " " : gap, after,
            *after ? gap : "");
}

static void put_name(FILE *file, const char *before, const char *name)
{
    fprintf(file, "%s <b>", before);
    esp_label_text(file, name ? name : "");
    fprintf(file, "%s</b>", gap);
}

static void put_setup(FILE *file, const struct esp_iteration *it,
                      const struct esp_picture_look *look)
{
    const struct esp_colours *colours = look->colours;
    esp_label_row(file, LINE, colours->label);
    put_name(file, "drafter", it->drafter);
    put_name(file, "verifier", it->verifier);
    if (it->lossy)
        fprintf(file, "<font color=\"%s\"><b>LOSSY%s</b></font>", colours->rejected, gap);
    if (look->models && *look->models)
        esp_label_text(file, look->models);
    esp_label_row_end(file);
}

/* Writes the values of the controller, a few in each line. */
static void put_gauges(FILE *file, const struct esp_iteration *it,
                       const struct esp_colours *colours)
{
    enum { IN_A_ROW = 3 };
    char before[16], after[16], name[64];
    for (int i = 0; i < it->gauge_count && i < ESP_MAX_GAUGES; i++) {
        const struct esp_gauge *g = &it->gauges[i];
        if (i % IN_A_ROW == 0)
            esp_label_row(file, LINE, colours->label);
        esp_label_text(file, esp_gauge_full_name(name, it, g->name));
        fprintf(file, " <b>%s", esp_number(before, g->before, 3));
        if (g->after != g->before)
            fprintf(file, " \u2192 %s", esp_number(after, g->after, 3));
        fprintf(file, "%s</b>", gap);
        if (i % IN_A_ROW == IN_A_ROW - 1 || i + 1 == it->gauge_count)
            esp_label_row_end(file);
    }
}

static void put_times(FILE *file, const struct esp_iteration *it,
                      const struct esp_colours *colours)
{
    const double *s = it->seconds;
    char number[16], words[64];
    double all = 0;
    for (int i = 0; i < ESP_STAGES; i++)
        all += s[i];
    if (!(all > 0))
        return;
    esp_label_row(file, LINE, colours->label);
    snprintf(words, sizeof words, "ms in %d pass%s", it->draft_passes,
             it->draft_passes == 1 ? "" : "es");
    put_fact(file, "draft", esp_number(number, 1e3 * s[ESP_STAGE_DRAFT], 2), words);
    put_fact(file, "verify", esp_number(number, 1e3 * s[ESP_STAGE_VERIFY], 2), "ms");
    put_fact(file, "rest",
             esp_number(number, 1e3 * (all - s[ESP_STAGE_DRAFT] - s[ESP_STAGE_VERIFY]), 2),
             "ms");
    esp_label_row_end(file);
    if (it->committed_count < 1)
        return;
    const double each = all / it->committed_count;
    esp_label_row(file, LINE, colours->label);
    put_fact(file, "per token", esp_number(number, 1e3 * each, 2), "ms");
    if (it->baseline > 0) {
        put_fact(file, "plain decoding", esp_number(number, 1e3 * it->baseline, 2), "ms");
        fprintf(file, "<b>%.2fx</b>", it->baseline / each);
    }
    esp_label_row_end(file);
}

void esp_picture_caption(FILE *file, const struct esp_iteration *it,
                         const struct esp_picture_look *look)
{
    fputs("<table border=\"0\" cellborder=\"0\" cellspacing=\"0\" cellpadding=\"2\">", file);
    put_title(file, it, look->colours);
    if (look->caption == ESP_CAPTION_FULL) {
        put_setup(file, it, look);
        put_gauges(file, it, look->colours);
        put_times(file, it, look->colours);
    }
    fputs("</table>", file);
}

/* ------------------------------------------------------------------ legend */

/* Writes a cell that contains a small node as an example, and its meaning. */
static void put_sample(FILE *file, const char *colour, int border, const char *style,
                       const char *mark, const char *text)
{
    const bool twice = strcmp(style, "double") == 0;
    const char *frame = twice ? "" : style;
    fputs("<td>", file);
    if (twice)
        fprintf(file,
                "<table border=\"1\" cellborder=\"0\" cellspacing=\"0\" cellpadding=\"2\" "
                "color=\"%s\" style=\"rounded\"><tr><td>",
                colour);
    fprintf(
        file,
        "<table border=\"%d\" cellborder=\"0\" cellpadding=\"%d\" color=\"%s\" "
        "style=\"rounded%s\"><tr><td width=\"18\"><font color=\"%s\"><b>%s</b></font></td></tr>"
        "</table>",
        border, twice ? 0 : 2, colour, frame, colour, mark);
    fputs(twice ? "</td></tr></table>" : "", file);
    fprintf(file, "</td><td align=\"left\">%s%s</td>", text, gap);
}

static void put_shades(FILE *file, const struct esp_colours *colours)
{
    char colour[8];
    fputs("<td><table border=\"0\" cellborder=\"1\" cellspacing=\"0\" cellpadding=\"0\" ",
          file);
    fprintf(file, "color=\"%s\"><tr>", colours->frame);
    for (int i = 0; i <= 4; i++) {
        esp_colours_shade(colours, i / 4.0, colour);
        fprintf(file, "<td width=\"14\" height=\"16\" bgcolor=\"%s\"> </td>", colour);
    }
    fprintf(file,
            "</tr></table></td><td align=\"left\">shade: how sure the draft is there, 0 to 1%s"
            "</td>",
            gap);
}

static void put_widths(FILE *file, const struct esp_colours *colours)
{
    static const double values[] = {0.05, 0.5, 1};
    fputs("<td><table border=\"0\" cellborder=\"0\" cellspacing=\"3\" cellpadding=\"0\"><tr>",
          file);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        fprintf(
            file,
            "<td><table border=\"0\" cellborder=\"0\" cellspacing=\"0\" cellpadding=\"0\"><tr>"
            "<td width=\"22\" height=\"%d\" fixedsize=\"true\" "
            "bgcolor=\"%s\"></td></tr></table>"
            "</td>",
            (int)lround(0.8 + 7.2 * values[i]), colours->edge);
    fprintf(file, "</tr></table></td><td align=\"left\">edge: the draft's probability q%s</td>",
            gap);
}

/* Says what the picture shows in addition to its tokens. The legend explains only this. */
struct shown {
    bool verdict[4];
    bool confidence, draft, target; /* probabilities */
    bool test, draw;                /* decisions */
};

static struct shown find_shown(const struct esp_iteration *it)
{
    struct shown shown = {.confidence = false};
    struct esp_decision decision;
    for (int i = 0; i < it->tree.count; i++) {
        const struct esp_node *n = &it->tree.nodes[i];
        shown.confidence = shown.confidence || isfinite(n->confidence);
        if (i == 0)
            continue;
        esp_decision_of(&decision, it, i);
        shown.verdict[n->verdict & 3] = true;
        shown.draft = shown.draft || isfinite(esp_draft_probability(it, i));
        shown.target = shown.target || isfinite(n->p);
        shown.test = shown.test || decision.kind == ESP_DECISION_TEST;
        shown.draw = shown.draw || decision.kind == ESP_DECISION_DRAW;
    }
    return shown;
}

static void put_test(FILE *file, const struct esp_iteration *it)
{
    struct esp_item item;
    fputs("a: acceptance probability", file);
    /* A formula whose letters need an explanation is left out, because there is no room for the
     * explanation. */
    if (esp_item_of(ESP_VERIFIERS, it->verifier, &item) && !item.where) {
        fputs(", here ", file);
        esp_label_text(file, item.formula);
    }
    fprintf(file, "%su: random number, below a if accepted%s", gap, gap);
}

/* Explains the third line in a node, which shows the verifier's decision. */
static void put_decisions(FILE *file, const struct esp_iteration *it, const struct shown *shown)
{
    if (!it->verifier || (!shown->test && !shown->draw))
        return;
    fputs("<tr><td align=\"left\">", file);
    if (shown->test)
        put_test(file, it);
    if (shown->draw)
        fputs("drawn: the target drew this token; a is its probability", file);
    fputs("</td></tr>", file);
}

/* Explains the kinds of nodes in the picture. Kinds that are missing get empty columns, because
 * Graphviz would stretch the columns of a narrow row. */
static void put_samples(FILE *file, const struct shown *shown,
                        const struct esp_colours *colours)
{
    enum { EMPTY = 12 };
    const struct {
        int verdict;
        const char *colour;
        int border;
        const char *style, *mark, *text;
    } samples[] = {
        {ESP_ACCEPTED, colours->accepted, 3, "", "\u2713", "accepted"},
        {ESP_REJECTED, colours->rejected, 2, "", "\u2717", "rejected"},
        {ESP_UNVISITED, colours->frame, 1, "", "&#160;", "not visited"},
        {ESP_CUT, colours->cut, 1, ",dashed", "&#160;", "cut before the target saw it"},
    };
    int missing = 0;
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
        if (shown->verdict[samples[i].verdict])
            put_sample(file, samples[i].colour, samples[i].border, samples[i].style,
                       samples[i].mark, samples[i].text);
        else
            missing++;
    put_sample(file, colours->bonus, 1, "double", "+", "from the target");
    for (int i = EMPTY * missing; i > 0; i--)
        fputs("<td></td>", file);
}

/* Explains shades, edges and numbers, if there are any. */
static void put_measures(FILE *file, const struct shown *shown,
                         const struct esp_colours *colours)
{
    if (!shown->draft && !shown->confidence && !shown->target)
        return;
    fputs("<tr><td align=\"left\"><table border=\"0\" cellborder=\"0\" cellspacing=\"2\" "
          "cellpadding=\"1\"><tr>",
          file);
    if (shown->confidence)
        put_shades(file, colours);
    if (shown->draft)
        put_widths(file, colours);
    if (shown->target)
        fputs("<td align=\"left\">p: the target's probability</td>", file);
    fputs("</tr></table></td></tr>", file);
}

void esp_picture_legend(FILE *file, const struct esp_iteration *it,
                        const struct esp_picture_look *look)
{
    const struct esp_colours *colours = look->colours;
    const struct shown shown = find_shown(it);
    fprintf(file,
            "<table border=\"0\" cellborder=\"0\" cellspacing=\"2\" cellpadding=\"0\">"
            "<tr><td height=\"12\"></td></tr><tr>"
            "<td align=\"left\"><font point-size=\"%d\" color=\"%s\">"
            "<table border=\"0\" cellborder=\"0\" cellspacing=\"2\" cellpadding=\"1\"><tr>",
            LEGEND, colours->label);
    put_samples(file, &shown, colours);
    fputs("</tr></table></font></td></tr>", file);
    put_measures(file, &shown, colours);
    put_decisions(file, it, &shown);
    fputs("</table>", file);
}
