//! A unified diff as Python's difflib and its port to Go make it. Crates find other longest
//! matches, and texts of errors are compared to the letter.

use std::collections::HashMap;

/// How many lines are shown around a change.
const CONTEXT: usize = 3;
/// From so many lines on, lines that make up more than a hundredth of them match nothing by
/// themselves.
const POPULAR_FROM: usize = 200;

/// How many lines are compared in all. Beyond that, whatever is left counts as replaced.
const COMPARED_MAX: usize = 2_000_000;
/// The longest diff that is told.
const TOLD_MAX: usize = 64 * 1024;

/// A run of equal lines: where it begins in both, and how long it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Match {
    old: usize,
    new: usize,
    length: usize,
}

/// How a part of the old lines becomes a part of the new ones.
#[derive(Clone, Debug)]
struct Step {
    equal: bool,
    old: std::ops::Range<usize>,
    new: std::ops::Range<usize>,
}

/// The diff of two texts.
pub(crate) fn diff(old: &str, new: &str) -> String {
    if old == new {
        return String::new();
    }
    let old: Vec<&str> = old.lines().collect();
    let new: Vec<&str> = new.lines().collect();
    let mut text = String::new();
    for group in groups(steps(&matches(&old, &new), old.len(), new.len())) {
        if text.len() > TOLD_MAX / 2 {
            break;
        }
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let range = |from: usize, to: usize| match to - from {
            0 => format!("{from},0"),
            1 => format!("{}", from + 1),
            length => format!("{},{length}", from + 1),
        };
        text += &format!(
            "@@ -{} +{} @@\n",
            range(first.old.start, last.old.end),
            range(first.new.start, last.new.end)
        );
        for step in group {
            let mut add = |sign: char, lines: &[&str]| {
                for line in lines {
                    if text.len() + line.len() > TOLD_MAX {
                        break;
                    }
                    text.push(sign);
                    text.push_str(line);
                    text.push('\n');
                }
            };
            if step.equal {
                add(' ', &old[step.old]);
            } else {
                add('-', &old[step.old]);
                add('+', &new[step.new]);
            }
        }
    }
    text
}

/// All runs of equal lines, in order.
fn matches(old: &[&str], new: &[&str]) -> Vec<Match> {
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, line) in new.iter().enumerate() {
        places.entry(line).or_default().push(index);
    }
    if new.len() >= POPULAR_FROM {
        let most = new.len() / 100 + 1;
        places.retain(|_, places| places.len() <= most);
    }
    let mut found = Vec::new();
    let mut left = COMPARED_MAX;
    let mut open = vec![(0..old.len(), 0..new.len())];
    while let Some((in_old, in_new)) = open.pop() {
        let longest = longest((old, new), &places, (in_old.clone(), in_new.clone()), &mut left);
        if longest.length == 0 {
            continue;
        }
        open.push((in_old.start..longest.old, in_new.start..longest.new));
        let after = (longest.old + longest.length, longest.new + longest.length);
        open.push((after.0..in_old.end, after.1..in_new.end));
        found.push(longest);
    }
    found.sort_by_key(|run| (run.old, run.new));
    found
}

/// The longest run of equal lines; of several the first in the old lines, then in the new.
/// Nothing is found any more when no comparisons are left.
fn longest(
    (old, new): (&[&str], &[&str]),
    places: &HashMap<&str, Vec<usize>>,
    (in_old, in_new): (std::ops::Range<usize>, std::ops::Range<usize>),
    left: &mut usize,
) -> Match {
    let mut best = Match { old: in_old.start, new: in_new.start, length: 0 };
    // How long the run is that ends at a line of the new ones.
    let mut lengths: HashMap<usize, usize> = HashMap::new();
    for index in in_old.clone() {
        let mut next = HashMap::new();
        let same = places.get(old[index]).map_or(&[][..], Vec::as_slice);
        let Some(fewer) = left.checked_sub(1 + same.len()) else {
            *left = 0;
            return Match { length: 0, ..best };
        };
        *left = fewer;
        for &place in same {
            if !in_new.contains(&place) {
                continue;
            }
            let before = place.checked_sub(1).and_then(|before| lengths.get(&before));
            let length = before.copied().unwrap_or(0) + 1;
            next.insert(place, length);
            if length > best.length {
                best = Match { old: index + 1 - length, new: place + 1 - length, length };
            }
        }
        lengths = next;
    }
    // Lines that are too popular to begin a run may go on with one.
    while best.old > in_old.start
        && best.new > in_new.start
        && old[best.old - 1] == new[best.new - 1]
    {
        best = Match { old: best.old - 1, new: best.new - 1, length: best.length + 1 };
    }
    while best.old + best.length < in_old.end
        && best.new + best.length < in_new.end
        && old[best.old + best.length] == new[best.new + best.length]
    {
        best.length += 1;
    }
    best
}

/// The way from the old lines to the new ones.
fn steps(matches: &[Match], old: usize, new: usize) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut at_old = 0;
    let mut at_new = 0;
    let end = Match { old, new, length: 0 };
    for run in matches.iter().copied().chain([end]) {
        if at_old < run.old || at_new < run.new {
            steps.push(Step { equal: false, old: at_old..run.old, new: at_new..run.new });
        }
        (at_old, at_new) = (run.old + run.length, run.new + run.length);
        if run.length > 0 {
            match steps.last_mut() {
                Some(last) if last.equal => {
                    last.old.end = at_old;
                    last.new.end = at_new;
                }
                _ => steps.push(Step { equal: true, old: run.old..at_old, new: run.new..at_new }),
            }
        }
    }
    steps
}

/// The steps with a little of what is equal around them, apart where much of it lies between.
fn groups(steps: Vec<Step>) -> Vec<Vec<Step>> {
    let mut groups = vec![Vec::new()];
    let count = steps.len();
    for (index, mut step) in steps.into_iter().enumerate() {
        if step.equal {
            let length = step.old.len();
            let is_first = index == 0;
            let is_last = index + 1 == count;
            if !is_first && !is_last && length > 2 * CONTEXT {
                let head = Step {
                    equal: true,
                    old: step.old.start..step.old.start + CONTEXT,
                    new: step.new.start..step.new.start + CONTEXT,
                };
                if let Some(group) = groups.last_mut() {
                    group.push(head);
                }
                groups.push(Vec::new());
            }
            if is_last && length > CONTEXT && !is_first {
                step.old.end = step.old.start + CONTEXT;
                step.new.end = step.new.start + CONTEXT;
            } else if !is_last && length > CONTEXT && (is_first || length > 2 * CONTEXT) {
                step.old.start = step.old.end - CONTEXT;
                step.new.start = step.new.end - CONTEXT;
            }
        }
        if let Some(group) = groups.last_mut() {
            group.push(step);
        }
    }
    groups.retain(|group| group.iter().any(|step| !step.equal));
    groups
}

#[cfg(test)]
mod tests {
    use super::{TOLD_MAX, diff};

    fn lines(lines: &[&str]) -> String {
        lines.join("\n")
    }

    #[test]
    fn equal_texts_have_no_diff() {
        assert_eq!(diff("a\nb", "a\nb"), "");
    }

    /// Lines that stand apart again and again would be compared as often as there are lines.
    #[test]
    fn the_diff_of_many_lines_is_bounded() {
        let text = |from: usize, all: usize| -> String {
            (from..from + all).map(|i| format!("name: V{i}\nvalue: {}\n", i % 90)).collect()
        };
        let told = diff(&text(0, 20_000), &text(15_000, 20_000));
        assert!(told.starts_with("@@ -1,") && told.len() <= TOLD_MAX + 100, "{}", told.len());
        assert_eq!(diff(&text(0, 20_000), &text(0, 20_000)), "");
    }

    #[test]
    fn changes_far_apart_are_told_apart() {
        let old = lines(&["a", "1", "2", "3", "4", "5", "6", "7", "b"]);
        let new = lines(&["A", "1", "2", "3", "4", "5", "6", "7", "B"]);
        assert_eq!(
            diff(&old, &new),
            "@@ -1,4 +1,4 @@\n-a\n+A\n 1\n 2\n 3\n@@ -6,4 +6,4 @@\n 5\n 6\n 7\n-b\n+B\n"
        );
    }

    #[test]
    fn changes_close_together_are_told_together() {
        let old = lines(&["x", "a", "1", "2", "b", "y"]);
        let new = lines(&["x", "1", "2", "B", "y", "z"]);
        assert_eq!(diff(&old, &new), "@@ -1,6 +1,6 @@\n x\n-a\n 1\n 2\n-b\n+B\n y\n+z\n");
    }

    #[test]
    fn what_is_only_added_or_removed_has_an_empty_range() {
        assert_eq!(diff("", "a"), "@@ -0,0 +1 @@\n+a\n");
        assert_eq!(diff("a", ""), "@@ -1 +0,0 @@\n-a\n");
    }
}
