/* page.js - plays the recording in the page (page_writer.h describes the data).
 *
 * The whole page is a function of two numbers. `at` is the shown iteration. `stage` says how
 * many of its stages have ended (1: drafted ... 5: adapted). draw() makes the page from both.
 * Text from the recording reaches the page only through textContent and attributes, so it is
 * never parsed as HTML.
 */
"use strict";
(function () {
    const data = JSON.parse(document.getElementById("recording").textContent);
    const STAGES = ["draft", "verify", "select", "commit", "adapt"];
    const VERDICTS = ["unvisited", "accepted", "rejected", "cut"];
    const MARKS = ["", "\u2713", "\u2717", ""];
    const KINDS = ["prompt", "drafted", "bonus", "mark", "chosen"];
    const SHOWN_TOKENS = 1500; /* maximum number of tokens that are shown while the page plays */
    const CHART_POINTS = 400;
    const narrow = matchMedia("(max-width: 820px)");
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const $ = (id) => document.getElementById(id);
    const string = (index) => data.strings[index];

    const frames = data.iterations;
    let at = 0, stage = STAGES.length, chosen = 0, timer = 0, printing = false;
    let picked = false; /* the user has chosen the node */
    let whole = true; /* the whole iteration is shown, not one of its stages */

    /* ------------------------------------------------------------ making elements */

    function element(name, classes, text) {
        const made = document.createElement(name);
        if (classes)
            made.className = classes;
        if (text !== undefined)
            made.textContent = text;
        return made;
    }

    function shape(name, attributes) {
        const made = document.createElementNS("http://www.w3.org/2000/svg", name);
        for (const key in attributes)
            made.setAttribute(key, attributes[key]);
        return made;
    }

    /* ------------------------------------------------------------ numbers */

    /* Returns a probability as the terminal writes it: ".81", "<.01". */
    function probability(p) {
        if (p === null || p === undefined)
            return "\u2013";
        if (p > 0 && p < 0.005)
            return "<.01";
        return p.toFixed(2).replace(/^0/, "");
    }

    function number(value) {
        if (value === null || value === undefined)
            return "\u2013";
        return String(Number(value.toPrecision(3))).replace(/^(-?)0\./, "$1.");
    }

    const duration = (seconds) => seconds >= 1e-5 || !(seconds > 0) ?
        number(1e3 * seconds) + " ms" : number(1e6 * seconds) + " \u00b5s";

    /* ------------------------------------------------------------ the text */

    /* Tokens of the text: {text, kind, score, frame}. A score is [surprisal, entropy, rank, likely]. */
    function tokens(parts, scores, frame) {
        const made = [];
        for (let i = 0; i < parts.length; i += 2)
            made.push({text: string(parts[i]), kind: parts[i + 1], score: (scores || [])[i / 2] || null, frame});
        return made;
    }

    /* Appends the tokens of all iterations up to `last` to the array `text`. If an iteration shortens the
     * text, first calls left() with the new length and the index of the iteration. */
    function follow(text, last, committed, left) {
        const added = (more) => more.forEach((token) => text.push(token));
        for (let i = 0; i <= last; i++) {
            for (const change of frames[i].before || []) {
                if (change.keep !== undefined && change.keep < text.length) {
                    left(change.keep, i);
                    text.length = change.keep;
                }
                added(tokens(change.text || [], null, -1));
            }
            if (i < last || committed)
                added(tokens(frames[i].text, frames[i].scores, i));
        }
    }

    /* Returns the text before iteration `index` or, if `committed` is true, after it. */
    function textAt(index, committed) {
        const text = [];
        follow(text, index, committed, () => {});
        return text;
    }

    const HEATS = ["surprisal", "entropy", "rank", "origin"];
    const ORIGINS = [4, 0, 2, -1, 4]; /* the colour step of each kind of token */

    /* Returns the step (0 to 4) of a token's colour, by the chosen measure, or -1. */
    function stepOf(token) {
        const heat = HEATS.indexOf($("heat").value);
        if (heat < 0)
            return -1;
        if (heat === 3)
            return ORIGINS[token.kind];
        if (!token.score || token.kind === 3)
            return -1;
        const value = heat === 2 ? token.score[2] || 9 : token.score[heat];
        return value === null ? 4 : data.heats[heat].limits.filter((limit) => value >= limit).length;
    }

    function sayToken(token) {
        const score = token.score, said = $("token");
        const who = ["you wrote it", "drafted, and accepted", "from the target", "a control token of the chat format",
                     "you chose it"][token.kind];
        const parts = [element("span", "", JSON.stringify(token.text) + ": " + who)];
        if (score) {
            parts.push(element("span", "", "; surprisal " + number(score[0]) + " bits, entropy " + number(score[1]) +
                                           " bits, rank " + (score[2] || "9 or more") + ". The likeliest here: "));
            for (let i = 0; i < score[3].length; i += 2)
                parts.push(element("span", score[2] === i / 2 + 1 ? "written" : "",
                                   (i ? ", " : "") + string(score[3][i]) + " " + probability(score[3][i + 1])));
        }
        said.replaceChildren(...parts);
    }

    function drawHeat() {
        const heat = HEATS.indexOf($("heat").value), made = [];
        for (let i = 0; heat >= 0 && i < 5; i++)
            if (data.heats[heat].words[i] !== null)
                made.push(element("span", "heat-" + (i + 1), data.heats[heat].words[i]), " ");
        $("heat-key").replaceChildren(...made);
        $("origins").hidden = heat >= 0;
    }

    function drawText() {
        const committed = stage >= 4, text = textAt(at, committed), box = $("text");
        const most = printing ? Infinity : SHOWN_TOKENS;
        const start = Math.max(0, text.length - most), made = [];
        const fresh = committed ? text.length - frames[at].text.length / 2 : text.length;
        if (start > 0)
            made.push(element("span", "prompt", "\u2026 "));
        for (let i = start; i < text.length; i++) {
            const step = stepOf(text[i]);
            const style = step >= 0 ? "heat-" + (step + 1) : $("heat").value === "off" ? KINDS[text[i].kind] : "";
            const span = element("span", style + (i >= fresh ? " new" : ""), text[i].text);
            span.addEventListener("click", () => sayToken(text[i]));
            made.push(span);
        }
        box.replaceChildren(...made);
        box.scrollTop = box.scrollHeight;
    }

    /* ------------------------------------------------------------ branches */

    /* Lists the texts that another text replaced, and the last text: {frame, fork, words, count}. */
    const branches = (function () {
        const found = [], text = [];
        let shared = 0; /* number of tokens that the text shares with an earlier branch */
        const note = (frame) => {
            const own = text.slice(shared);
            if (own.length)
                found.push({frame, fork: shared, count: own.length,
                            words: own.slice(0, 24).map((token) => token.text).join("").trim()});
        };
        follow(text, frames.length - 1, true, (length, frame) => {
            note(frame - 1);
            shared = length;
        });
        note(frames.length - 1);
        return found;
    })();

    function drawBranches() {
        $("branches-part").hidden = branches.length < 2;
        $("branches").replaceChildren(...branches.map((branch) => {
            const item = element("li"), button = element("button", "", branch.words || "\u2026");
            button.type = "button";
            button.addEventListener("click", byHand(() => go(Math.max(0, branch.frame))));
            item.append(button, " " + branch.count + " tokens" + (branch.fork ? ", from token " + branch.fork : ""));
            return item;
        }));
    }

    /* ------------------------------------------------------------ the tree */

    const node = (fields) => ({
        token: fields[0], parent: fields[1], verdict: fields[2], q: fields[3], p: fields[4],
        confidence: fields[5], path: fields[6], u: fields[7], acceptance: fields[8],
        copies: fields[9], said: fields[10], copied: fields[11],
    });

    /* Returns the rows of a frame's tree from top to bottom: {index, depth, y, parent}. The token
     * that the target adds is a separate row. */
    function layOut(frame, rows) {
        const nodes = frame.nodes.map(node), children = nodes.map(() => []), places = [];
        let last = 0, next = 0;
        nodes.forEach((n, i) => {
            if (i > 0)
                children[n.parent].push(i);
            if (stage >= 3 && n.verdict === 1)
                last = i;
        });
        const bonus = stage >= 3 && frame.bonus !== undefined;
        const stack = [[0, 0, null]];
        while (stack.length) {
            const [index, depth, parent] = stack.pop();
            const place = {index, depth, parent, y: null, below: []};
            places.push(place);
            if (parent)
                parent.below.push(place);
            if (index < 0)
                continue;
            const kids = children[index].slice();
            if (bonus && index === last)
                kids.push(-1);
            for (const kid of kids.reverse())
                stack.push([kid, depth + 1, place]);
        }
        for (const place of places)
            if (rows || !place.below.length)
                place.y = next++;
        if (!rows)
            for (const place of places.slice().reverse())
                if (place.y === null)
                    place.y = (place.below[0].y + place.below[place.below.length - 1].y) / 2;
        return {nodes, places, height: next};
    }

    /* Returns the source of a node that has no draft probability. */
    const source = (n) => n.copied === -2 ? "expected" : n.copied === -3 ? "recycled" : "copied";

    /* Returns the draft probability of a node or, if it has none, its source. */
    const draft = (n) => n.copied ? source(n) : "q " + probability(n.q);

    function describe(n, index) {
        const shown = stage >= 3 || n.verdict === 3 ? VERDICTS[n.verdict] : "drafted";
        return string(n.token) + (index ? ", " + shown + ", " + draft(n) : ", root") +
               (index && stage >= 2 && n.p !== null ? ", p " + probability(n.p) : "");
    }

    function makeItem(frame, nodes, place, rows) {
        const index = place.index, n = nodes[index], item = element("div", "item");
        const target = index < 0;
        const verdict = target || index === 0 || (stage < 3 && n.verdict !== 3) ? 0 : n.verdict;
        const token = element("span", "token");
        const sign = target ? "+ " : MARKS[verdict] ? MARKS[verdict] + " " : "";
        token.append(element("span", "mark-sign", sign),
                     element("bdi", "", string(target ? frame.bonus : n.token)));
        item.append(token);
        item.classList.add(target ? "target" : index === 0 ? "root" : VERDICTS[verdict]);
        const numbers = target ? "from the target" : index === 0 ? "the text so far" :
            draft(n) +
            (stage >= 2 && n.p !== null ? " \u00a0p " + probability(n.p) : "") +
            (n.copies > 1 ? " \u00a0\u00d7" + n.copies : "");
        item.append(element("span", "numbers", numbers));
        if (!target && n.confidence !== null) {
            const bar = element("span", "sure");
            bar.style.width = 100 * Math.min(1, Math.max(0, n.confidence)) + "%";
            item.append(bar);
        }
        item.setAttribute("role", "treeitem");
        item.setAttribute("aria-level", place.depth + 1);
        item.setAttribute("aria-label", target ? string(frame.bonus) + ", from the target"
                                               : describe(n, index));
        item.setAttribute("aria-selected", index === chosen ? "true" : "false");
        if (place.below.length)
            item.setAttribute("aria-expanded", "true");
        item.dataset.index = index;
        item.tabIndex = index === chosen ? 0 : -1;
        item.addEventListener("click", () => { choose(index); });
        item.style.left = rows ? 1.1 * place.depth + "rem" : 9.4 * place.depth + 0.25 + "rem";
        item.style.top = rows ? 2.15 * place.y + 0.2 + "rem" : 2.6 * place.y + 0.25 + "rem";
        if (rows)
            item.style.maxWidth = "calc(100% - " + (1.1 * place.depth + 0.3) + "rem)";
        else
            item.style.width = "7.6rem";
        return item;
    }

    function makeEdge(frame, nodes, place, rows, rem) {
        const from = place.parent, n = nodes[place.index], width = rows ? 1.1 : 9.4;
        const step = rows ? 2.15 : 2.6, middle = rows ? 1.15 : 1.43;
        const y0 = rem * (step * from.y + middle), y1 = rem * (step * place.y + middle);
        const verdict = n && (stage >= 3 || n.verdict === 3) ? n.verdict : 0;
        const x1 = rem * (width * place.depth + 0.3);
        let line;
        if (rows) {
            const x0 = rem * (width * from.depth + 0.5);
            line = `M${x0} ${y0 + 0.7 * rem}V${y1}H${x1}`;
        } else {
            const x0 = rem * (width * from.depth + 7.85), half = (x0 + x1) / 2;
            line = `M${x0} ${y0}C${half} ${y0} ${half} ${y1} ${x1} ${y1}`;
        }
        const thick = n ? 0.8 + (rows ? 3 : 7) * Math.min(1, Math.max(0, n.q || 0)) : 3;
        return shape("path", {d: line, "stroke-width": thick.toFixed(2),
                              class: n ? VERDICTS[verdict] : "target"});
    }

    let shownRows = [];

    function drawTree() {
        const frame = frames[at], rows = narrow.matches || printing, tree = $("tree");
        const {nodes, places, height} = layOut(frame, rows);
        const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
        const deepest = places.reduce((most, place) => Math.max(most, place.depth), 0);
        const edges = shape("svg", {"aria-hidden": "true", width: 1, height: 1});
        const had = tree.contains(document.activeElement);
        shownRows = places.slice().sort((a, b) => a.y - b.y || a.depth - b.depth);
        tree.className = rows ? "rows" : "";
        tree.style.height = (rows ? 2.15 : 2.6) * height + 0.4 + "rem";
        tree.style.width = rows ? "100%" : 9.4 * deepest + 8.2 + "rem";
        for (const place of places)
            if (place.parent)
                edges.append(makeEdge(frame, nodes, place, rows, rem));
        tree.replaceChildren(edges, ...places.map((p) => makeItem(frame, nodes, p, rows)));
        if (had)
            focusItem();
        showChosen();
        drawNode(nodes);
    }

    /* Scrolls the tree to the chosen node. Does not scroll the page. */
    function showChosen() {
        const box = $("tree-box"), item = box.querySelector('[aria-selected="true"]');
        if (!item)
            return;
        const top = item.offsetTop, left = item.offsetLeft + item.offsetWidth;
        if (top < box.scrollTop || top + item.offsetHeight > box.scrollTop + box.clientHeight)
            box.scrollTop = top - box.clientHeight / 2;
        if (left > box.scrollLeft + box.clientWidth || item.offsetLeft < box.scrollLeft)
            box.scrollLeft = left - 0.8 * box.clientWidth;
    }

    function focusItem() {
        const item = $("tree").querySelector('[aria-selected="true"]');
        if (item)
            item.focus({preventScroll: true});
    }

    function drawNode(nodes) {
        const frame = frames[at], n = nodes[chosen], list = $("node-numbers");
        const facts = [];
        const decided = stage >= 3 || (n && n.verdict === 3);
        $("node-said").textContent = chosen < 0 ? string(frame.bonus) + ": the target adds it itself." :
            string(n.token) + ": " + (decided || chosen === 0 ? string(n.said) : "drafted: no decision yet") + ".";
        if (n && chosen > 0) {
            facts.push(n.copied ? [source(n), n.copied > 0 ? n.copied + " back" : "yes"]
                                : ["draft q", probability(n.q)]);
            if (stage >= 2)
                facts.push(["target p", probability(n.p)]);
            if (n.path !== null)
                facts.push(["path", probability(n.path)]);
        }
        if (n && n.confidence !== null)
            facts.push(["confidence there", probability(n.confidence)]);
        if (n && stage >= 3 && n.acceptance !== null)
            facts.push([n.u !== null ? "chance a" : "drawn, chance", probability(n.acceptance)]);
        if (n && stage >= 3 && n.u !== null)
            facts.push(["number u", probability(n.u)]);
        list.replaceChildren(...facts.map(([name, value]) => {
            const pair = element("div");
            pair.append(element("dt", "", name), element("dd", "", value));
            return pair;
        }));
    }

    function choose(index) {
        chosen = index;
        picked = true;
        drawTree();
        focusItem();
    }

    /* Arrow keys in the tree: up and down through the rows, left to the parent, right to a child. */
    function walk(key) {
        const here = shownRows.findIndex((place) => place.index === chosen);
        const place = shownRows[Math.max(0, here)];
        const to = key === "ArrowUp" ? shownRows[here - 1] : key === "ArrowDown" ? shownRows[here + 1] :
                   key === "ArrowLeft" ? place.parent : place.below[0];
        if (to)
            choose(to.index);
    }

    function drawLegend() {
        const frame = frames[at], nodes = frame.nodes.map(node), made = [];
        const sample = (kind, sign, text) => {
            const span = element("span");
            span.append(element("span", "sample " + kind, sign), text);
            made.push(span);
        };
        const has = (verdict) => nodes.some((n, i) => i > 0 && n.verdict === verdict);
        if (stage >= 3 && has(1))
            sample("accepted", "\u2713", "accepted");
        if (stage >= 3 && has(2))
            sample("rejected", "\u2717", "rejected");
        if (stage < 3 ? has(0) || has(1) || has(2) : has(0))
            sample("unvisited", "", stage < 3 ? "drafted" : "not visited");
        if (has(3))
            sample("cut", "", "cut before the target saw it");
        if (stage >= 3 && frame.bonus !== undefined)
            sample("target", "+", "from the target");
        if (nodes.some((n) => n.confidence !== null))
            sample("confidence", "", "how sure the draft is at this node");
        if (frame.hidden)
            made.push(element("span", "", "\u2026 " + frame.hidden + " less likely nodes are hidden"));
        $("legend").replaceChildren(...made);
    }

    /* ------------------------------------------------------------ what happened */

    function drawStages() {
        $("stages").replaceChildren(...STAGES.map((name, i) => {
            const item = element("li", "", name);
            if (!whole && i === stage - 1)
                item.setAttribute("aria-current", "step");
            return item;
        }));
        const frame = frames[at];
        $("said").textContent = (whole ? [2, 4] : [stage - 1])
            .map((said) => string(frame.said[said])).join(" ");
        const earlier = at === 0 && data.earlier > 0 ? [data.earlier +
            " iterations came before this one; they are not on this page"] : [];
        $("note").textContent = earlier.concat((frame.before || []).map((change) =>
            change.note === undefined ? "" : string(change.note))).filter((note) => note).join(" \u00b7 ");
        $("setup").textContent = "drafter " + string(frame.drafter) + " \u00b7 verifier " +
            string(frame.verifier) + (frame.lossy ? " \u00b7 LOSSY" : "") +
            [data.device, data.started].map((index) => string(index) ? " \u00b7 " + string(index) : "").join("");
    }

    /* ------------------------------------------------------------ charts */

    /* Chooses at most CHART_POINTS evenly spaced frames. The last frame is always included. */
    const sampled = (function () {
        const step = Math.max(1, Math.ceil(frames.length / CHART_POINTS)), chosenFrames = [];
        for (let i = 0; i < frames.length; i += step)
            chosenFrames.push(i);
        if (frames.length && chosenFrames[chosenFrames.length - 1] !== frames.length - 1)
            chosenFrames.push(frames.length - 1);
        return chosenFrames;
    })();

    const across = (i) => frames.length > 1 ? 1000 * i / (frames.length - 1) : 500;

    function makeChart(label) {
        const svg = shape("svg", {class: "chart", viewBox: "0 0 1000 100",
                                  preserveAspectRatio: "none", role: "img", "aria-label": label});
        return svg;
    }

    function line(values, least, most) {
        let path = "", pen = false;
        values.forEach((value, k) => {
            if (value === null || value === undefined) {
                pen = false;
                return;
            }
            const y = most > least ? 94 - 88 * (value - least) / (most - least) : 50;
            path += (pen ? "L" : "M") + across(sampled[k]).toFixed(1) + " " + y.toFixed(1);
            pen = true;
        });
        return path;
    }

    const gaugeOf = (frame, gauge) => (frame.gauges || []).find((g) => g[0] === gauge);

    /* For each gauge, its values over the whole recording. They are computed only once. */
    const courses = data.gauges.map((gauge, index) => {
        const values = sampled.map((i) => {
            const found = gaugeOf(frames[i], index);
            return found ? found[2] : null;
        });
        const known = values.filter((value) => value !== null);
        return {values, least: Math.min(...known), most: Math.max(...known)};
    });

    function drawGauge(frame, index) {
        const about = data.gauges[index], found = gaugeOf(frame, index), course = courses[index];
        const goal = about.goal === undefined ? undefined : gaugeOf(frame, about.goal);
        const figure = element("figure"), caption = element("figcaption");
        const adapted = stage >= 5, value = adapted ? found[2] : found[1];
        let {least, most} = course;
        if (goal) {
            least = Math.min(least, goal[2]);
            most = Math.max(most, goal[2]);
        }
        const moved = adapted && found[1] !== found[2];
        const shown = moved ? number(found[1]) + " \u2192 " + number(found[2]) : number(value);
        caption.append(element("span", "", string(about.name)),
                       element("span", "range", number(least) + " to " + number(most)),
                       element("span", "value", shown));
        const chart = makeChart(string(about.name) + ", now " + shown + ", from " + number(least) +
                                " to " + number(most));
        chart.append(shape("path", {class: "course", d: line(course.values, least, most)}));
        if (goal)
            chart.append(shape("path", {class: "goal",
                                        d: line(courses[about.goal].values, least, most)}));
        chart.append(shape("path", {class: "here", d: `M${across(at)} 0V100`}));
        figure.append(caption, chart);
        const why = moved && found[3] !== undefined ? string(found[3]) : string(about.meaning);
        if (why)
            figure.append(element("p", "", why));
        return figure;
    }

    function drawController() {
        const frame = frames[at], figures = [], still = [];
        for (const gauge of frame.gauges || []) {
            const course = courses[gauge[0]];
            if (course.most > course.least)
                figures.push(drawGauge(frame, gauge[0]));
            else
                still.push(string(data.gauges[gauge[0]].name) + " " + number(gauge[2]));
        }
        if (!figures.length && !still.length)
            still.push("This drafter has no thresholds.");
        $("charts").replaceChildren(...figures);
        $("still").textContent = still.join(" \u00b7 ");
    }

    function drawTime() {
        const frame = frames[at], box = $("time"), made = [];
        const seconds = frame.seconds, all = seconds.reduce((sum, s) => sum + s, 0);
        const tokens = frame.text.length / 2;
        const plain = (frame.baseline || 0) * tokens, most = Math.max(all, plain) || 1;
        const bar = element("div", "bar"), list = element("dl");
        seconds.forEach((s, i) => {
            const part = element("span", "stage-" + data.stages[i]);
            part.style.width = 100 * s / most + "%";
            bar.append(part);
            const pair = element("div"), name = element("dt");
            name.append(element("span", "swatch stage-" + data.stages[i]), data.stages[i]);
            pair.append(name, element("dd", "", duration(s)));
            list.append(pair);
        });
        if (!(all > 0)) {
            box.replaceChildren(element("p", "", "not measured"));
            return;
        }
        made.push(element("p", "", tokens + (tokens === 1 ? " token in " : " tokens in ") +
                          duration(all)), bar);
        if (plain > 0) {
            const other = element("div", "bar"), part = element("span", "plain");
            part.style.width = 100 * plain / most + "%";
            other.append(part);
            made.push(element("p", "", "plain decoding of as many tokens: " + duration(plain) +
                              ", " + (plain / all).toFixed(2) + "x"), other);
        }
        box.replaceChildren(...made, list);
    }

    /* Draws the committed tokens of each iteration as columns; in a long recording, a column is the
     * mean of several iterations. */
    const columns = sampled.map((first, k) => {
        const end = k + 1 < sampled.length ? sampled[k + 1] : frames.length;
        let accepted = 0, tokens = 0;
        for (let i = first; i < end; i++) {
            for (let j = 1; j < frames[i].text.length; j += 2)
                accepted += frames[i].text[j] === 1;
            tokens += frames[i].text.length / 2;
        }
        const count = Math.max(1, end - first);
        return {first, accepted: accepted / count, tokens: tokens / count};
    });

    function drawCourse() {
        const most = columns.reduce((high, column) => Math.max(high, column.tokens), 1);
        const width = 1000 / columns.length, box = $("course");
        const chart = makeChart("tokens committed by each iteration, up to " + number(most));
        let low = "", high = "";
        columns.forEach((column, k) => {
            const x = (k * width).toFixed(2), wide = (0.82 * width).toFixed(2);
            const a = 96 * column.accepted / most, b = 96 * column.tokens / most;
            low += `M${x} 100v${(-a).toFixed(2)}h${wide}v${a.toFixed(2)}z`;
            high += `M${x} ${(100 - a).toFixed(2)}v${(a - b).toFixed(2)}h${wide}v${(b - a).toFixed(2)}z`;
        });
        chart.append(shape("path", {class: "accepted", d: low}),
                     shape("path", {class: "target", d: high}),
                     shape("path", {class: "here", d: ""}));
        chart.addEventListener("click", (event) => {
            const area = chart.getBoundingClientRect();
            const share = (event.clientX - area.left) / area.width;
            go(columns[Math.min(columns.length - 1, Math.max(0, Math.floor(share * columns.length)))].first);
        });
        const caption = element("p", "key");
        const mean = columns.length ?
            frames.reduce((sum, frame) => sum + frame.text.length / 2, 0) / frames.length : 0;
        for (const [kind, text] of [["commit", "accepted drafts"], ["select", "from the target"]]) {
            const span = element("span");
            span.append(element("span", "swatch stage-" + kind), text);
            caption.append(span);
        }
        caption.append(element("span", "", number(mean) + " tokens per iteration on average"));
        box.replaceChildren(chart, caption);
    }

    function moveCourse() {
        const here = $("course").querySelector(".here");
        const column = columns.findIndex((c, k) => k + 1 === columns.length || columns[k + 1].first > at);
        if (here)
            here.setAttribute("d", `M${1000 * (column + 0.41) / columns.length} 0V100`);
    }

    /* ------------------------------------------------------------ moving */

    function draw() {
        if (!picked) /* choosing a node must not reveal a decision before it is made */
            chosen = stage >= 3 ? frames[at].telling : 0;
        $("number").textContent = frames[at].index + " (" + (at + 1) + " of " + frames.length + ")";
        $("place").value = at;
        $("place").setAttribute("aria-valuetext", "iteration " + (at + 1) + " of " + frames.length);
        drawText();
        drawStages();
        drawTree();
        drawLegend();
        drawController();
        drawTime();
        moveCourse();
    }

    /* Goes to the end of stage `ended` of iteration `index`. Without `ended`, shows the whole
     * iteration. */
    function go(index, ended) {
        at = Math.min(frames.length - 1, Math.max(0, index));
        stage = ended === undefined ? STAGES.length : ended;
        whole = ended === undefined;
        picked = false;
        draw();
    }

    function goStage(step) {
        if (stage + step > STAGES.length) {
            if (at + 1 < frames.length)
                go(at + 1, 1);
        } else if (stage + step < 1) {
            if (at > 0)
                go(at - 1, STAGES.length);
        } else {
            stage += step;
            whole = false;
            draw();
        }
    }

    const atEnd = () => at + 1 >= frames.length && stage >= STAGES.length;

    function pause() {
        clearTimeout(timer);
        timer = 0;
        $("play").setAttribute("aria-label", "play");
        $("play-mark").setAttribute("d", "M6 4l14 8-14 8z");
    }

    function schedule() {
        const speed = $("speed").value;
        let wait = 1000 / (Number(speed) || 1);
        if (speed === "recorded" && at + 1 < frames.length)
            wait = Math.min(2000, Math.max(16, 1000 * (frames[at + 1].time - frames[at].time)));
        timer = setTimeout(() => {
            if (speed === "stages")
                goStage(1);
            else
                go(at + 1);
            if (atEnd())
                pause();
            else
                schedule();
        }, wait);
    }

    function play() {
        if (timer) {
            pause();
            return;
        }
        if (atEnd())
            go(0, $("speed").value === "stages" ? 1 : undefined);
        $("play").setAttribute("aria-label", "pause");
        $("play-mark").setAttribute("d", "M6 4h5v16H6zM14 4h5v16h-5z");
        schedule();
    }

    /* Returns a function that stops the playback and then runs an action of the user. */
    const byHand = (move) => () => {
        pause();
        move();
    };

    function onKey(event) {
        if (event.ctrlKey || event.altKey || event.metaKey)
            return;
        const inTree = $("tree").contains(event.target), field = event.target.closest("select, input");
        const moves = {
            ArrowLeft: () => go(at - 1), ArrowRight: () => go(at + 1),
            "<": () => go(at - 1), ">": () => go(at + 1),
            ",": () => goStage(-1), ".": () => goStage(1),
            Home: () => go(0), End: () => go(frames.length - 1),
        };
        if (event.key === " " && !event.target.closest("button, select, summary")) {
            play();
        } else if (inTree && event.key.startsWith("Arrow")) {
            walk(event.key);
        } else if (moves[event.key] && !(field && (event.key.startsWith("Arrow") || event.key === "Home" ||
                                                   event.key === "End"))) {
            pause();
            moves[event.key]();
        } else {
            return;
        }
        event.preventDefault();
    }

    /* ------------------------------------------------------------ light and dark */

    function isDark() {
        const chosenTheme = document.documentElement.dataset.theme;
        return chosenTheme ? chosenTheme === "dark" : dark.matches;
    }

    function nameTheme() {
        $("theme").textContent = isDark() ? "light" : "dark";
        $("theme").setAttribute("aria-label", isDark() ? "light colours" : "dark colours");
        $("theme").setAttribute("aria-pressed", document.documentElement.dataset.theme ? "true" : "false");
    }

    function start() {
        const draft = string(data.draft);
        const models = string(data.target) + (draft ? " \u2190 " + draft : "");
        document.title = "espalier: " + (models || "a recording");
        $("models").textContent = models;
        $("place").max = Math.max(0, frames.length - 1);
        $("first").addEventListener("click", byHand(() => go(0)));
        $("back").addEventListener("click", byHand(() => go(at - 1)));
        $("stage-back").addEventListener("click", byHand(() => goStage(-1)));
        $("stage-forward").addEventListener("click", byHand(() => goStage(1)));
        $("forward").addEventListener("click", byHand(() => go(at + 1)));
        $("last").addEventListener("click", byHand(() => go(frames.length - 1)));
        $("play").addEventListener("click", play);
        $("place").addEventListener("input", byHand(() => go(Number($("place").value))));
        $("theme").addEventListener("click", () => {
            document.documentElement.dataset.theme = isDark() ? "light" : "dark";
            nameTheme();
        });
        document.addEventListener("keydown", onKey);
        narrow.addEventListener("change", drawTree);
        dark.addEventListener("change", nameTheme);
        addEventListener("beforeprint", () => { printing = true; drawText(); drawTree(); });
        addEventListener("afterprint", () => { printing = false; drawText(); drawTree(); });
        const scored = frames.some((frame) => frame.scores);
        for (const name of ["off"].concat(scored ? HEATS : ["origin"])) {
            const option = element("option", "", name);
            option.value = name;
            $("heat").append(option);
        }
        $("heat").addEventListener("change", () => { drawHeat(); drawText(); });
        nameTheme();
        drawHeat();
        drawBranches();
        drawCourse();
        go(0);
    }

    start();
})();
