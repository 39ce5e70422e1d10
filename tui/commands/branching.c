/* branching.c - see branching.h. */
#include "tui/commands/branching.h"

#include <stdlib.h>
#include <string.h>

#include "tui/commands/prompts.h"

const char *esp_branching_refusal(const struct esp_control *control)
{
    const int phase = control->state.phase;
    if (!control->state.ready || phase == ESP_PHASE_FAILED || phase == ESP_PHASE_LOADING)
        return "no models are loaded yet";
    if (control->prompts.kept >= 0 || control->forks > 0)
        return "the text is still being changed; try again in a moment";
    return NULL;
}

bool esp_branching_point(struct esp_control *control, struct esp_branch_point *point)
{
    struct esp_ui *ui = &control->ui;
    const struct esp_canvas *canvas = control->canvas;
    const struct esp_look *look = &ui->look;
    int pane = ui->layout.current;
    if (!ui->layout.focused || !esp_panes[pane]->point)
        pane = look->of_token || look->iteration < 0 ? ESP_PANE_text : ESP_PANE_tree;
    const struct esp_layout layout = esp_ui_layout(ui, canvas->width, canvas->height);
    const struct esp_shown shown = esp_ui_shown(ui, &control->state, &layout, pane);
    *point = (struct esp_branch_point){.count = 0};
    if (esp_panes[pane]->point(&shown, point))
        return true;
    esp_answer(control, "no branch can begin here: there is no token");
    return false;
}

struct esp_text_token *esp_branching_text(const struct esp_control *control,
                                          const struct esp_branch_point *point, int *count)
{
    const int length = point->place.length;
    struct esp_written *written = malloc(((size_t)length + 1) * sizeof *written);
    struct esp_text_token *text =
        malloc(((size_t)length + (size_t)point->count + 1) * sizeof *text);
    *count = length + point->count;
    if (written)
        esp_branches_text(&control->state.branches, point->place, 0, written);
    for (int i = 0; written && text && i < length; i++)
        text[i] = (struct esp_text_token){written[i].token, written[i].kind};
    for (int i = 0; text && i < point->count; i++)
        text[length + i] = (struct esp_text_token){point->tokens[i], ESP_TEXT_CHOSEN};
    if (!written) {
        free(text);
        text = NULL;
    }
    free(written);
    return text;
}

int esp_branching_go(struct esp_control *control, const struct esp_branch_point *point,
                     const char *words, enum esp_fork why, bool on)
{
    int count;
    const char *refusal = esp_branching_refusal(control);
    if (refusal)
        return esp_refuse(control, "%s", refusal);
    struct esp_text_token *text = esp_branching_text(control, point, &count);
    if (!text)
        return esp_refuse(control, "not enough memory for the branch");
    control->forks++;
    ESP_WORKER_POST(control->worker, FORK, .text = {(const char *)text, words},
                    .length = (size_t)count * sizeof *text, .number = {why}, .flag = on);
    free(text);
    esp_ui_follow(&control->ui, &control->state);
    control->ui.look.branch = -1;
    return ESP_OK;
}

void esp_branching_judge(struct esp_control *control, int branch)
{
    if (branch < 0 || branch >= control->state.branches.count)
        return;
    const struct esp_branch *of = &control->state.branches.branch[branch];
    ESP_WORKER_POST(control->worker, JUDGE, .text = {of->name},
                    .number = {branch, of->marked | of->deleted << 1});
}

/* If undo has restored a branch, or redo has deleted it again, tells the library of kept
 * sessions. */
static void judge_undone(struct esp_control *control)
{
    const struct esp_steps_back *const steps[] = {&control->state.branches.undo,
                                                  &control->state.branches.redo};
    for (int i = 0; i < 2; i++)
        if (steps[i]->count > 0)
            esp_branching_judge(control, steps[i]->step[steps[i]->count - 1].deleted);
}

int esp_branching_back(struct esp_control *control, bool redo)
{
    struct esp_branches *branches = &control->state.branches;
    const struct esp_step_back *step = esp_branches_back(branches, redo);
    if (control->forks > 0) { /* the change that is to be undone is not recorded yet */
        control->back += redo ? -1 : 1;
        return ESP_OK;
    }
    if (!step)
        return esp_refuse(control,
                          redo ? "there is nothing to redo" : "there is nothing to undo");
    const struct esp_branch_point point = {.place = step->place};
    if (step->place.branch == branches->at.branch &&
        step->place.length == branches->at.length) {
        esp_branches_went_back(branches, redo);
        judge_undone(control);
        return esp_answer(control,
                          redo ? "the branch is deleted again" : "the branch is restored");
    }
    const int status =
        esp_branching_go(control, &point, NULL, redo ? ESP_FORK_REDO : ESP_FORK_UNDO, false);
    return status < 0
               ? status
               : esp_answer(control, redo ? "redone; u undoes it" : "undone; U redoes it");
}

int esp_branching_done(struct esp_control *control)
{
    int status = ESP_OK;
    if (control->forks > 0)
        control->forks--;
    esp_prompts_read(&control->prompts, &control->state);
    if (control->doomed > 0) /* the branch is no longer current and can be deleted */
        esp_branches_delete(&control->state.branches, control->doomed - 1);
    control->doomed = 0;
    judge_undone(control);
    while (control->back != 0 && control->forks == 0) {
        const bool redo = control->back < 0;
        control->back += redo ? 1 : -1;
        status = esp_branching_back(control, redo);
        if (status < 0)
            control->back = 0;
    }
    return status;
}
