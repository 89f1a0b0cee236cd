//! Links in the documents lead somewhere.

use std::path::Path;

use crate::assert_tidy;
use crate::source;

/// The targets of a document's links, without those that leave the repository.
fn relative_links(document: &str) -> impl Iterator<Item = &str> {
    let targets = document.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
    targets
        .map(|target| target.split('#').next().unwrap_or_default())
        .filter(|target| !target.is_empty() && !target.contains(':'))
}

#[test]
fn relative_links_point_to_files_that_exist() {
    let mut problems = Vec::new();
    for path in source::files("md") {
        let directory = source::root().join(Path::new(&path).parent().unwrap());
        for target in relative_links(&source::read(&path)) {
            if !directory.join(target).exists() {
                problems.push(format!("{path}: the link to {target} leads nowhere"));
            }
        }
    }
    assert_tidy(&problems);
}

#[test]
fn documents_name_no_machine() {
    let mut problems = Vec::new();
    for path in source::files("md") {
        for (index, line) in source::read(&path).lines().enumerate() {
            for place in ["/root/", "/work/", "/home/"] {
                if line.split([' ', '`', '(', '"']).any(|word| word.starts_with(place)) {
                    problems.push(format!("{path}:{}: no `{place}`", index + 1));
                }
            }
        }
    }
    assert_tidy(&problems);
}

#[test]
fn links_out_of_the_repository_and_within_a_page_are_left_alone() {
    let document = "[a](src/lib.rs) [b](https://x.y/z) [c](#here) [d](docs/e.md#part)";
    assert_eq!(relative_links(document).collect::<Vec<_>>(), ["src/lib.rs", "docs/e.md"]);
}
