//! A file of tokens and their users, as comma-separated values.

use std::path::{Path, PathBuf};

use crate::user::User;

/// Why a file of tokens cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenFileError {
    /// It cannot be read.
    #[error("cannot read the token file {}: {reason}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// It is not made of values with commas in between.
    #[error("token file '{}': record on line {line}: {reason}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where a record begins, from 1 on.
        line: usize,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A line says too little.
    #[error(
        "token file '{}' must have at least 3 columns (token, user name, user uid), found {found}",
        path.display()
    )]
    Columns {
        /// The file.
        path: PathBuf,
        /// How many there are.
        found: usize,
    },
}

/// The tokens and their users. What stands in the last of several lines about a token counts.
pub(super) fn users(text: &str, path: &Path) -> Result<Vec<(String, User)>, TokenFileError> {
    let mut users = Vec::new();
    let mut rest = Records { text, line: 1 };
    loop {
        let line = rest.line;
        let record = rest.next_record().map_err(|reason| {
            let path = path.to_owned();
            TokenFileError::Malformed { path, line, reason }
        })?;
        let Some(record) = record else { return Ok(users) };
        let [token, name, uid, more @ ..] = record.as_slice() else {
            return Err(TokenFileError::Columns { path: path.to_owned(), found: record.len() });
        };
        if token.is_empty() {
            tracing::warn!(path = %path.display(), line, "empty token in the token file");
            continue;
        }
        let groups = more.first().map(|groups| groups.split(',').map(str::to_owned).collect());
        let user = User {
            name: name.clone(),
            uid: uid.clone(),
            groups: groups.unwrap_or_default(),
            ..User::default()
        };
        users.push((token.clone(), user.authenticated()));
    }
}

/// What is left to read.
struct Records<'a> {
    text: &'a str,
    line: usize,
}

impl Records<'_> {
    /// The next record. Empty lines are passed over, as Go does.
    fn next_record(&mut self) -> Result<Option<Vec<String>>, &'static str> {
        while self.take("\r\n") || self.take("\n") {
            self.line += 1;
        }
        if self.text.is_empty() {
            return Ok(None);
        }
        let mut record = Vec::new();
        loop {
            record.push(if self.take("\"") { self.quoted()? } else { self.plain()? });
            if self.take(",") {
                continue;
            }
            if self.take("\r\n") || self.take("\n") {
                self.line += 1;
            } else if !self.text.is_empty() {
                return Err("extraneous or missing \" in quoted-field");
            }
            return Ok(Some(record));
        }
    }

    fn plain(&mut self) -> Result<String, &'static str> {
        let end = self.text.find([',', '\n']).unwrap_or(self.text.len());
        let (mut field, rest) = self.text.split_at(end);
        if rest.starts_with('\n') {
            field = field.strip_suffix('\r').unwrap_or(field);
        }
        self.text = rest;
        if field.contains('"') { Err("bare \" in non-quoted-field") } else { Ok(field.to_owned()) }
    }

    /// What stands up to the closing quote; two of them are one of the text.
    fn quoted(&mut self) -> Result<String, &'static str> {
        let mut field = String::new();
        loop {
            let end = self.text.find('"').ok_or("extraneous or missing \" in quoted-field")?;
            field.push_str(&self.text[..end]);
            self.text = &self.text[end + 1..];
            if !self.take("\"") {
                self.line += field.matches('\n').count();
                return Ok(field.replace("\r\n", "\n"));
            }
            field.push('"');
        }
    }

    fn take(&mut self, what: &str) -> bool {
        let Some(rest) = self.text.strip_prefix(what) else { return false };
        self.text = rest;
        true
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::users;

    /// A token, and the name, the uid and the groups of its user.
    type Read = (String, String, String, Vec<String>);

    fn read(text: &str) -> Result<Vec<Read>, String> {
        let users = users(text, Path::new("tokens.csv")).map_err(|error| error.to_string())?;
        let flat = users.into_iter().map(|(token, user)| (token, user.name, user.uid, user.groups));
        Ok(flat.collect())
    }

    #[test]
    fn a_line_is_a_token_a_user_a_uid_and_perhaps_groups() {
        let text =
            "t1,jane,1\r\n\n t2,\"Smith, \"\"Joe\"\"\",2,\"dev,ops\",more\n,nobody,3\nt3,x,,g";
        let read = read(text).unwrap();
        let expected = [
            ("t1", "jane", "1", vec!["system:authenticated"]),
            (" t2", "Smith, \"Joe\"", "2", vec!["dev", "ops", "system:authenticated"]),
            ("t3", "x", "", vec!["g", "system:authenticated"]),
        ];
        assert_eq!(read.len(), expected.len());
        for ((token, name, uid, groups), expected) in read.iter().zip(&expected) {
            let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
            assert_eq!(&(token.as_str(), name.as_str(), uid.as_str(), groups), expected);
        }
        assert_eq!(self::read("").unwrap(), []);
    }

    #[test]
    fn what_makes_no_sense_is_told_with_its_line() {
        for (text, expected) in [
            (
                "a,b,c\nt,jane\n",
                "must have at least 3 columns (token, user name, user uid), found 2",
            ),
            ("a,b,c\nt,ja\"ne,1", "record on line 2: bare \" in non-quoted-field"),
            ("t,\"jane,1", "record on line 1: extraneous or missing \" in quoted-field"),
            ("t,\"jane\"x,1", "record on line 1: extraneous or missing \" in quoted-field"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
