/* Tests the tidy layout with trees of every shape. The test finds the cells that boxes and
 * edges cover, and checks that these cells are as viz/tidy.h promises. */
#include "viz/tidy.h"

#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

enum { MOST = 120, GAP = 4, COLUMNS = 4096, ROWS = 256 };

static struct esp_tidy_box boxes[MOST];
static int count, width, height;

static bool is_leaf(int at)
{
    for (int i = at + 1; i < count; i++)
        if (boxes[i].parent == at)
            return false;
    return true;
}

static bool is_below(int at, int above)
{
    while (at > above)
        at = boxes[at].parent;
    return at == above;
}

static int first_child(int at)
{
    int child = at + 1;
    while (child < count && boxes[child].parent != at)
        child++;
    return child < count ? child : -1;
}

static int last_child(int at)
{
    int child = count - 1;
    while (child > at && boxes[child].parent != at)
        child--;
    return child;
}

/* Makes a random tree. `spread` is 0 for a chain, 1 for random parents, and 2 for a root that
 * has all other nodes as children. */
static void make_tree(int nodes, int spread, unsigned long long *random)
{
    count = nodes;
    for (int i = 0; i < count; i++) {
        int any = (int)(check_uniform(random) * i);
        int parent = spread == 0 ? i - 1 : spread == 2 ? 0 : any;
        boxes[i] = (struct esp_tidy_box){.parent = i == 0 ? -1 : parent,
                                         .width = 1 + (int)(check_uniform(random) * 12)};
    }
    CHECK(esp_tidy_place(boxes, count, GAP, &width, &height) == 0);
}

/* Marks the cells that belong to a box: its own cells, the blank cell after it if it is a leaf,
 * and the edge that leads to it. The parts of edges between siblings belong to their parent.
 * Returns false if a cell already belongs to another box. */
static bool cover(short *cells, int at, int owner)
{
    const struct esp_tidy_box *b = &boxes[at];
    int from = b->x - (at > 0 ? GAP : 0), to = b->x + b->width + is_leaf(at);
    for (int x = from; x < to; x++) {
        short *cell = &cells[b->y * COLUMNS + x];
        if (*cell && *cell != owner)
            return false;
        *cell = (short)owner;
    }
    return true;
}

static void check_no_overlap(void)
{
    short *cells = calloc(COLUMNS * ROWS, sizeof *cells);
    CHECK(cells && width < COLUMNS && height <= ROWS);
    for (int i = 0; i < count; i++)
        CHECK(cover(cells, i, i + 1), "box %d of %d covers a cell of another box", i, count);
    /* on the right of a box, only edges to its children are allowed */
    for (int i = 0; i < count; i++)
        for (int first = first_child(i), y = first < 0 ? ROWS : boxes[first].y;
             first >= 0 && y <= boxes[last_child(i)].y; y++) {
            short owner = cells[y * COLUMNS + boxes[i].x + boxes[i].width + 1];
            CHECK(owner == 0 || boxes[owner - 1].parent == i, "box %d overlaps an edge of %d",
                  owner - 1, i);
        }
    free(cells);
}

static void check_order_and_centre(void)
{
    int top = ROWS, bottom = 0;
    for (int i = 0; i < count; i++) {
        const struct esp_tidy_box *b = &boxes[i], *parent = &boxes[i ? b->parent : 0];
        int first = first_child(i), last = last_child(i);
        top = b->y < top ? b->y : top;
        bottom = b->y > bottom ? b->y : bottom;
        CHECK(b->x == (i ? parent->x + parent->width + GAP : 0));
        if (first >= 0)
            CHECK(b->y == boxes[first].y + (boxes[last].y - boxes[first].y) / 2);
        for (int j = i + 1; j < count; j++)
            CHECK(i == 0 || boxes[j].parent != b->parent || boxes[j].y > b->y);
    }
    CHECK(top == 0 && bottom == height - 1);
}

/* Returns whether the subtree of `at` is as high as possible. This is true if, one row
 * higher, it would touch the subtrees of earlier siblings, or no free row would be left between
 * them. */
static bool is_tight(int at)
{
    short *cells = calloc(COLUMNS * (ROWS + 1), sizeof *cells), *lower = cells + COLUMNS;
    int parent = boxes[at].parent;
    bool tight = false;
    CHECK(cells);
    for (int i = parent + 1; i < count; i++)
        for (int s = first_child(parent); s < at; s++)
            if (boxes[s].parent == parent && is_below(i, s))
                cover(lower, i, 1);
    for (int i = at; i < count && !tight; i++)
        if (is_below(i, at))
            tight = !cover(cells, i, 2);        /* tries the subtree one row higher */
    for (int x = 0; x < COLUMNS && !tight; x++) /* would its edge cross an outline? */
        for (int y = 0, seen = 0; y <= ROWS; y++) {
            short owner = cells[y * COLUMNS + x];
            tight = tight || (owner == 1 && seen == 2);
            seen = owner ? owner : seen;
        }
    free(cells);
    return tight;
}

static void check_tight(void)
{
    int leaves = 0;
    for (int i = 0; i < count; i++) {
        leaves += is_leaf(i);
        if (i > 0 && first_child(boxes[i].parent) != i)
            CHECK(is_tight(i), "box %d of %d could be higher", i, count);
    }
    CHECK(height <= leaves, "%d rows for %d leaves", height, leaves);
}

TEST(trees_of_every_shape_are_tidy)
{
    unsigned long long random = 8;
    const int rounds = check_quick() ? 20 : 150;
    for (int round = 0; round < rounds; round++) {
        make_tree(1 + (int)(check_uniform(&random) * (round % 3 == 1 ? MOST - 1 : 20)),
                  round % 3, &random);
        check_no_overlap();
        check_order_and_centre();
        check_tight();
    }
}

TEST(narrow_subtrees_use_the_room_beside_wide_ones)
{
    /* The root has two children. One child has three children. The other child is a leaf with a
     * shorter text. */
    const struct esp_tidy_box shape[] = {{-1, 4, 0, 0}, {0, 10, 0, 0}, {0, 9, 0, 0},
                                         {1, 6, 0, 0},  {1, 6, 0, 0},  {1, 6, 0, 0}};
    memcpy(boxes, shape, sizeof shape);
    CHECK(esp_tidy_place(boxes, 6, GAP, &width, &height) == 0);
    CHECK(boxes[1].y == 1 && boxes[3].y == 0 && boxes[4].y == 1 && boxes[5].y == 2);
    CHECK(boxes[2].y == 2,
          "the leaf is in row %d, but there is room for it directly below its sibling",
          boxes[2].y);
    CHECK(height == 3 && width == 28);
    /* if the leaf's box is one column wider, the blank cell after it touches an edge */
    boxes[2].width = 10;
    CHECK(esp_tidy_place(boxes, 6, GAP, &width, &height) == 0);
    CHECK(boxes[2].y == 3 && height == 4);
}

/* The same subtree must have the same shape below different parents. */
TEST(equal_subtrees_are_drawn_alike)
{
    unsigned long long random = 5;
    for (int round = 0; round < 30; round++) {
        make_tree(30, 1, &random);
        struct esp_tidy_box alone[30];
        int nodes = count, columns, rows;
        memcpy(alone, boxes, sizeof alone);
        /* the new root gets two copies of the tree as children */
        for (int i = 0; i < nodes; i++) {
            boxes[2 * i + 1] = boxes[2 * i + 2] = alone[i];
            boxes[2 * i + 1].parent = i == 0 ? 0 : 2 * alone[i].parent + 1;
            boxes[2 * i + 2].parent = i == 0 ? 0 : 2 * alone[i].parent + 2;
        }
        boxes[0] = (struct esp_tidy_box){.parent = -1, .width = 7};
        CHECK(esp_tidy_place(boxes, 2 * nodes + 1, GAP, &columns, &rows) == 0);
        for (int i = 0; i < nodes; i++)
            for (int twin = 1; twin <= 2; twin++) {
                CHECK(boxes[2 * i + twin].x - boxes[twin].x == alone[i].x);
                CHECK(boxes[2 * i + twin].y - boxes[twin].y == alone[i].y - alone[0].y);
            }
        CHECK(rows <= 2 * height);
    }
}

TEST(a_long_chain_and_a_wide_star_are_tidy)
{
    static struct esp_tidy_box many[2050];
    for (int star = 0; star < 2; star++) {
        for (int i = 0; i < 2050; i++)
            many[i] = (struct esp_tidy_box){.parent = star && i > 0 ? 0 : i - 1, .width = 3};
        CHECK(esp_tidy_place(many, 2050, GAP, &width, &height) == 0);
        CHECK(height == (star ? 2049 : 1) && width == (star ? 10 : 2050 * 7 - 4));
    }
    CHECK(esp_tidy_place(many, 0, GAP, &width, &height) == 0 && width == 0 && height == 0);
}
