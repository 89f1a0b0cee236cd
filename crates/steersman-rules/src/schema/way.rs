//! The way to a value in a document, which becomes text only in a complaint: most values are right,
//! and a document can be as deep as it is wide.

/// How much of a key is told.
const KEY_MAX: usize = 256;

/// The way to a value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way<'a> {
    up: Option<&'a Way<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    Root,
    /// `.key`, without the dot at the root.
    Field(&'a str),
    /// `.key`
    Key(&'a str),
    /// `[key]`
    Entry(&'a str),
    /// `[3]`
    Index(usize),
}

impl<'a> Way<'a> {
    /// To the whole document.
    pub(super) const ROOT: Self = Self { up: None, step: Step::Root };

    /// Whether it leads nowhere but to the whole document.
    pub(super) fn is_root(&self) -> bool {
        matches!(self.step, Step::Root)
    }

    /// On to a field of an object.
    pub(super) fn field(&'a self, name: &'a str) -> Self {
        Self { up: Some(self), step: Step::Field(name) }
    }

    /// On to the value of a key in a map.
    pub(super) fn key(&'a self, key: &'a str) -> Self {
        Self { up: Some(self), step: Step::Key(key) }
    }

    /// On to the value of a key in a map, as Kubernetes itself writes it.
    pub(super) fn entry(&'a self, key: &'a str) -> Self {
        Self { up: Some(self), step: Step::Entry(key) }
    }

    /// On to an item of a list.
    pub(super) fn index(&'a self, index: usize) -> Self {
        Self { up: Some(self), step: Step::Index(index) }
    }

    /// The way as text, such as `spec.containers[0].image`.
    pub(super) fn text(&self) -> String {
        let mut text = self.up.map(Self::text).unwrap_or_default();
        let clipped = |key: &'a str| &key[..key.floor_char_boundary(KEY_MAX)];
        match self.step {
            Step::Root => {}
            Step::Field(name) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(clipped(name));
            }
            Step::Key(key) => {
                text.push('.');
                text.push_str(clipped(key));
            }
            Step::Entry(key) => text.push_str(&format!("[{}]", clipped(key))),
            Step::Index(index) => text.push_str(&format!("[{index}]")),
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::Way;

    #[test]
    fn a_way_reads_as_kubernetes_writes_it_and_does_not_grow_with_its_keys() {
        let spec = Way::ROOT.field("spec");
        let list = spec.field("list");
        let item = list.index(3);
        assert_eq!(item.key("a").text(), "spec.list[3].a");
        assert_eq!(Way::ROOT.key("a").text(), ".a");
        assert_eq!(item.entry("a").text(), "spec.list[3][a]");
        assert_eq!(Way::ROOT.text(), "");
        let long = "k".repeat(1_000_000);
        assert_eq!(item.field(&long).text().len(), "spec.list[3].".len() + 256);
    }
}
