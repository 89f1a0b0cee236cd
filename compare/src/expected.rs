//! Tables of differences that are known: `expected.txt` for the API server, another for controllers.

use crate::difference::Difference;
use crate::glob;

/// The table that belongs to the program.
const TABLE: &str = include_str!("../expected.txt");

/// What is expected, in the order of the table.
#[derive(Debug)]
pub(crate) struct Expected(Vec<Row>);

#[derive(Debug)]
struct Row {
    class: String,
    id: String,
    place: String,
    reason: String,
}

impl Expected {
    /// The table of the program.
    pub(crate) fn table() -> Result<Self, String> {
        Self::read("expected.txt", TABLE)
    }

    /// The table of a file.
    pub(crate) fn read(file: &str, text: &str) -> Result<Self, String> {
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let rows = lines.map(row).collect::<Result<_, _>>();
        rows.map(Self).map_err(|why| format!("{file}: {why}"))
    }

    /// Why a difference is there, if that is known.
    pub(crate) fn reason(&self, difference: &Difference) -> Option<&str> {
        let row = self.0.iter().find(|row| {
            glob::fits(&row.class, difference.class.name())
                && glob::fits(&row.id, &difference.id)
                && [&difference.place, &difference.theirs]
                    .iter()
                    .any(|text| glob::fits(&row.place, text))
        });
        row.map(|row| row.reason.as_str())
    }
}

fn row(line: &str) -> Result<Row, String> {
    let mut words = line.split_whitespace();
    let mut word = || words.next().map(|word| word.replace('~', " "));
    let (Some(class), Some(id), Some(place)) = (word(), word(), word()) else {
        return Err(format!("CLASS ID PLACE reason, not: {line}"));
    };
    let reason = words.collect::<Vec<_>>().join(" ");
    if reason.is_empty() {
        return Err(format!("a reason is missing: {line}"));
    }
    Ok(Row { class, id, place, reason })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::difference::Class;

    fn difference(class: Class, place: &str, theirs: &str) -> Difference {
        let (id, ours) = ("pods/update/x".to_owned(), String::new());
        Difference { id, class, place: place.into(), theirs: theirs.into(), ours }
    }

    #[test]
    fn the_table_can_be_read() {
        Expected::table().unwrap();
    }

    #[test]
    fn the_first_line_that_fits_gives_the_reason() {
        let table = "header * audit-id not audited\nstatus pods/* 403~*denied admission\n";
        let expected = Expected::read("a.txt", table).unwrap();
        let audit = difference(Class::Header, "audit-id", "x");
        assert_eq!(expected.reason(&audit), Some("not audited"));
        let denied = difference(Class::Status, "", "403 pods is denied");
        assert_eq!(expected.reason(&denied), Some("admission"));
        let other = difference(Class::Status, "", "404 none");
        assert_eq!(expected.reason(&other), None);
    }

    #[test]
    fn a_line_without_a_reason_is_refused() {
        assert!(Expected::read("a.txt", "header * audit-id\n").is_err());
    }
}
