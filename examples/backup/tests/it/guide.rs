//! The guide shows this example.

const SOURCES: [&str; 12] = [
    include_str!("../../src/backup.rs"),
    include_str!("../../src/main.rs"),
    include_str!("../../src/operator.rs"),
    include_str!("../../src/plan.rs"),
    include_str!("../../src/pod.rs"),
    include_str!("../../src/reconcile.rs"),
    include_str!("../../src/schedule.rs"),
    include_str!("../../src/store.rs"),
    include_str!("../../src/webhooks.rs"),
    include_str!("faults.rs"),
    include_str!("replicas.rs"),
    include_str!("runs.rs"),
];

/// The lines of a text, however far they are indented.
fn lines(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join("\n")
}

/// The guide promises that its snippets are compiled: those of *An operator* stand in the sources.
#[test]
fn the_guide_shows_what_is_tested() {
    let guide = include_str!("../../../../docs/guide/an-operator.md");
    let sources = SOURCES.map(lines);
    let mut snippets = 0;
    for snippet in guide.split("```rs\n").skip(1) {
        let snippet = snippet.split("```").next().unwrap();
        let shown = lines(snippet);
        let tested = sources.iter().any(|source| source.contains(&shown));
        assert!(tested, "docs/guide/an-operator.md differs from examples/backup:\n{snippet}");
        snippets += 1;
    }
    assert!(snippets > 8, "only {snippets} snippets were found");
}
