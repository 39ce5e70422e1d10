/* branch.c - ":branch" begins a branch at the selected node of the tree, at the selected token
 * of the text, or with the selected alternative to that token. With arguments, ":branch" goes
 * to an existing branch, or names, marks or deletes one. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "tui/commands/branching.h"
#include "tui/commands/command.h"

/* If the branch begins inside a user turn of a conversation, puts the text of that turn back on
 * the input line. Then the user can change the text and send it as a new turn. Returns false if
 * the branch begins elsewhere. */
static bool edits_words(struct esp_control *control, const struct esp_branch_point *point)
{
    const struct esp_state *state = &control->state;
    struct esp_prompts *prompts = &control->prompts;
    const int last = point->place.length - 1;
    if (!*state->loaded.chat || point->count > 0 || last < 0 || last >= state->span_count ||
        (state->spans[last].kind != ESP_TEXT_PROMPT &&
         state->spans[last].kind != ESP_TEXT_MARK))
        return false;
    int turn = prompts->count - 1;
    while (turn >= 0 && prompts->turns[turn].before > last)
        turn--;
    if (turn < 0)
        return false;
    const struct esp_branch_point before = {
        .place = esp_branches_before(&state->branches, state->branches.at,
                                     prompts->turns[turn].before)};
    char *words = strdup(prompts->turns[turn].text);
    if (words && esp_branching_go(control, &before, NULL, ESP_FORK_NEW, false) == ESP_OK) {
        esp_ui_leave(&control->ui);
        esp_request_line(&control->requests, words, false);
        esp_answer(control,
                   "change your text on the input line, then press Enter to send it again");
    }
    free(words);
    return true;
}

static int begin(struct esp_control *control)
{
    struct esp_branch_point point;
    const char *refusal = esp_branching_refusal(control);
    if (refusal)
        return esp_refuse(control, "%s", refusal);
    if (!esp_branching_point(control, &point))
        return ESP_E_ARGUMENT;
    if (!point.written && edits_words(control, &point))
        return ESP_OK;
    return esp_branching_go(control, &point, NULL, ESP_FORK_NEW, !point.written);
}

/* Returns the branches in the order of the branches pane, in allocated memory. Sets *at to the
 * row of `branch`, or to -1 if `branch` is not in the list. */
static int *listed(const struct esp_control *control, int branch, int *count, int *at)
{
    const struct esp_branches *b = &control->state.branches;
    int *order = calloc((size_t)b->count + 1, 2 * sizeof *order);
    *at = -1;
    *count = order ? esp_branches_list(b, order, order + b->count + 1) : 0;
    for (int i = 0; i < *count; i++)
        if (order[i] == branch)
            *at = i;
    return order;
}

static int go_to(struct esp_control *control, int branch)
{
    const struct esp_branch_point point = {
        .place = esp_branches_end(&control->state.branches, branch), .written = true};
    return esp_branching_go(control, &point, NULL, ESP_FORK_NEW, false);
}

/* Goes to branch `number` in the list, counted from 1. If `number` is 0, goes to the branch
 * that is `step` rows below the current one. */
static int go_by(struct esp_control *control, int step, int number)
{
    int count, at;
    int *order = listed(control, control->state.branches.at.branch, &count, &at);
    int row = number > 0 ? number - 1 : at + step;
    if (number == 0 && count > 0)
        row = (row + count) % count;
    const int branch = row >= 0 && row < count ? order[row] : -1;
    free(order);
    if (branch < 0)
        return esp_refuse(control, "there is no branch %d; the branches pane lists them",
                          row + 1);
    if (number == 0 && count < 2)
        return esp_refuse(control, "there is no other branch; press b to begin one");
    const int status = go_to(control, branch);
    return status < 0 ? status : esp_answer(control, "branch %d of %d", row + 1, count);
}

static int go_up(struct esp_control *control)
{
    const struct esp_branches *b = &control->state.branches;
    int branch = b->at.branch;
    do
        branch = branch >= 0 ? b->branch[branch].parent : -1;
    while (branch >= 0 && b->branch[branch].deleted);
    return branch < 0 ? esp_refuse(control, "this branch has no parent")
                      : go_to(control, branch);
}

/* If the branches pane has the focus, or was the last pane that had it, returns the branch at
 * the cursor of this pane. Otherwise returns the current branch. */
static int chosen(const struct esp_control *control)
{
    const struct esp_ui *ui = &control->ui;
    return ui->layout.current == ESP_PANE_branches && ui->look.branch >= 0
               ? ui->look.branch
               : control->state.branches.at.branch;
}

/* Returns the branch to go to when `branch` is deleted. This is the parent of `branch` or, if
 * `branch` has no parent, any other branch. Returns -1 if there is no other branch. */
static int refuge_of(const struct esp_control *control, int branch)
{
    const struct esp_branches *b = &control->state.branches;
    int count, at, refuge = b->branch[branch].parent;
    while (refuge >= 0 && b->branch[refuge].deleted)
        refuge = b->branch[refuge].parent;
    int *order = listed(control, branch, &count, &at);
    if (refuge < 0 && count > 1)
        refuge = order[at == 0 ? 1 : 0];
    free(order);
    return refuge;
}

static int delete (struct esp_control *control, int branch)
{
    struct esp_branches *b = &control->state.branches;
    if (branch < 0 || branch >= b->count || b->branch[branch].deleted)
        return esp_refuse(control, "there is no such branch");
    const char *refusal = esp_branching_refusal(control);
    if (refusal)
        return esp_refuse(control, "%s", refusal);
    control->ui.look.branch = -1;
    if (branch != b->at.branch) {
        esp_branches_delete(b, branch);
        esp_branching_judge(control, branch);
        return esp_answer(control, "the branch is deleted; u brings it back");
    }
    const int refuge = refuge_of(control, branch);
    if (refuge < 0)
        return esp_refuse(control,
                          "the only branch cannot be deleted; :clear begins a new text");
    const int status = go_to(control, refuge);
    if (status < 0)
        return status;
    control->doomed = branch + 1;
    return esp_answer(control, "the branch is deleted; u brings it back");
}

static int ask_to_delete(struct esp_control *control)
{
    char line[32];
    const int branch = chosen(control);
    if (branch < 0)
        return esp_refuse(control, "there is no branch to delete");
    const struct esp_branch *of = &control->state.branches.branch[branch];
    snprintf(line, sizeof line, ":branch delete! %d", branch);
    return esp_ask(control, line,
                   "Delete this branch (%d tokens of its own)? y: yes, any other key: no",
                   of->count);
}

static int name(struct esp_control *control, const char *words)
{
    const int branch = chosen(control);
    if (branch < 0)
        return esp_refuse(control, "there is no branch to name");
    struct esp_branch *of = &control->state.branches.branch[branch];
    snprintf(of->name, sizeof of->name, "%s", words);
    esp_branching_judge(control, branch);
    if (control->ui.layout.current == ESP_PANE_branches) /* the key was pressed in this pane */
        esp_ui_focus(&control->ui, ESP_PANE_branches);
    control->requests.changed = true;
    return *words ? esp_answer(control, "the branch is called %s", of->name)
                  : esp_answer(control, "the branch has no name");
}

static int mark(struct esp_control *control)
{
    const int branch = chosen(control);
    if (branch < 0)
        return esp_refuse(control, "there is no branch to mark");
    struct esp_branch *of = &control->state.branches.branch[branch];
    of->marked = !of->marked;
    esp_branching_judge(control, branch);
    return esp_answer(control, of->marked ? "marked with *" : "no longer marked");
}

/* Returns the arguments after `word`, or NULL if the arguments do not begin with `word`. */
static const char *after(const char *arguments, const char *word)
{
    const size_t length = strlen(word);
    if (strncmp(arguments, word, length) != 0 ||
        (arguments[length] && arguments[length] != ' '))
        return NULL;
    return arguments + length + strspn(arguments + length, " ");
}

static int run(struct esp_control *control, const char *arguments)
{
    const char *rest;
    if (!*arguments)
        return begin(control);
    if (strcmp(arguments, "next") == 0 || strcmp(arguments, "previous") == 0)
        return go_by(control, *arguments == 'n' ? 1 : -1, 0);
    if (strcmp(arguments, "parent") == 0)
        return go_up(control);
    if (isdigit((unsigned char)*arguments) && atoi(arguments) > 0)
        return go_by(control, 0, atoi(arguments));
    if (strcmp(arguments, "delete") == 0)
        return ask_to_delete(control);
    if (strcmp(arguments, "delete!") == 0)
        return delete (control, chosen(control));
    if ((rest = after(arguments, "delete!")) && isdigit((unsigned char)*rest))
        return delete (control, atoi(rest));
    if ((rest = after(arguments, "name")))
        return name(control, rest);
    if (strcmp(arguments, "mark") == 0)
        return mark(control);
    return esp_refuse(control,
                      "write :branch, :branch next, previous, parent, NUMBER, name TEXT, "
                      "mark or delete");
}

static void complete(const struct esp_control *control, struct esp_choices *choices)
{
    (void)control;
    if (*choices->before)
        return;
    esp_choices_offer(choices, "next", "go to the next branch in the list");
    esp_choices_offer(choices, "previous", "go to the previous branch in the list");
    esp_choices_offer(choices, "parent", "go to the branch from which this one starts");
    esp_choices_offer(choices, "name", "name the branch; without TEXT: remove its name");
    esp_choices_offer(choices, "mark", "mark the branch, or remove its mark");
    esp_choices_offer(choices, "delete", "delete the branch, after asking");
}

const struct esp_command_ops esp_command_branch = {
    .name = "branch",
    .usage = "[next|previous|parent|NUMBER|...]",
    .summary = "start a branch from the selected node or token, or go to another branch",
    .run = run,
    .complete = complete,
};
