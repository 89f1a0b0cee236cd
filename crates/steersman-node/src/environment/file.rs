//! Files of variables: `NAME='value'` a line, in single quotes and without anything to be filled in.

/// Why a text is no file of variables.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum InvalidFile {
    #[error("invalid environment variable format at line {0}: missing '='")]
    NoValue(usize),
    #[error("invalid environment variable format at line {0}: empty variable name")]
    NoName(usize),
    #[error(
        "invalid environment variable format at line {0}: whitespace before '=' is not allowed"
    )]
    Space(usize),
    #[error(
        "invalid environment variable format at line {0}: value must be enclosed in single quotes"
    )]
    Unquoted(usize),
    #[error(
        "invalid environment variable format at line {0}: unexpected content after closing quote"
    )]
    Trailing(usize),
    #[error("invalid environment variable format starting at line {0}: unclosed single quote")]
    Unclosed(usize),
}

const BLANK: [char; 2] = [' ', '\t'];

/// The value of a variable, if the file has it. What stands behind it is not looked at.
pub(super) fn value(content: &str, key: &str) -> Result<Option<String>, InvalidFile> {
    let mut lines = (1..).zip(content.lines());
    while let Some((number, line)) = lines.next() {
        let line = line.trim_start_matches(BLANK);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, value) = line.split_once('=').ok_or(InvalidFile::NoValue(number))?;
        match name.trim_end_matches(BLANK) {
            "" => return Err(InvalidFile::NoName(number)),
            trimmed if trimmed != name => return Err(InvalidFile::Space(number)),
            _ => {}
        }
        if value.starts_with(BLANK) {
            // To a shell this is an empty value in front of a command.
            if name == key {
                return Ok(None);
            }
            continue;
        }
        let quoted = value.strip_prefix('\'').ok_or(InvalidFile::Unquoted(number))?;
        let value = until_quote(quoted, number, &mut lines)?;
        if name == key {
            return Ok(Some(value));
        }
    }
    Ok(None)
}

/// What stands up to the closing quote, which may be lines away.
fn until_quote<'a>(
    first: &'a str,
    begin: usize,
    lines: &mut impl Iterator<Item = (usize, &'a str)>,
) -> Result<String, InvalidFile> {
    let mut value = String::new();
    let (mut number, mut line) = (begin, first);
    loop {
        if let Some((last, behind)) = line.split_once('\'') {
            value.push_str(last);
            let behind = behind.trim_start_matches(BLANK);
            if !behind.is_empty() && !behind.starts_with('#') {
                return Err(InvalidFile::Trailing(number));
            }
            return Ok(value);
        }
        value.push_str(line);
        value.push('\n');
        (number, line) = lines.next().ok_or(InvalidFile::Unclosed(begin))?;
    }
}

#[cfg(test)]
mod tests {
    use super::value;

    #[test]
    fn a_variable_stands_in_single_quotes() {
        for (content, expected) in [
            ("A='1'", "1"),
            ("B='2'\nA='1'", "1"),
            ("  \tA='1'", "1"),
            ("# A='2'\n\n \t\nA='1' # really", "1"),
            ("A='one\n  two'\nB='3'", "one\n  two"),
            ("A='$(B) \\n \"x\"'", "$(B) \\n \"x\""),
            ("A='1'\nnonsense", "1"),
            ("A='1'\nA='2'", "1"),
            ("A=''", ""),
            ("A= '1'", "-"),
            ("B= '1'\nA='2'", "2"),
            ("B='1'", "-"),
            ("", "-"),
            ("A", "! invalid environment variable format at line 1: missing '='"),
            ("\n='1'", "! invalid environment variable format at line 2: empty variable name"),
            (
                "A ='1'",
                "! invalid environment variable format at line 1: whitespace before '=' is not \
                 allowed",
            ),
            (
                "A=1",
                "! invalid environment variable format at line 1: value must be enclosed in single \
                 quotes",
            ),
            (
                "A='\n1' x",
                "! invalid environment variable format at line 2: unexpected content after closing \
                 quote",
            ),
            (
                "B='1'\nA='\n1",
                "! invalid environment variable format starting at line 2: unclosed single quote",
            ),
        ] {
            let found = match value(content, "A") {
                Ok(Some(value)) => value,
                Ok(None) => "-".to_owned(),
                Err(error) => format!("! {error}"),
            };
            assert_eq!(found, expected, "{content}");
        }
    }
}
