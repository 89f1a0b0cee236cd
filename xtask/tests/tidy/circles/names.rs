//! What a file says: the modules that it declares, the names that it defines and imports, and
//! the paths that it mentions. Code for tests is passed over, and so is what only limits who
//! may see a name, such as `pub(in crate::a)`.

use proc_macro2::{Delimiter, LexError, TokenStream, TokenTree};

/// A path as it is written, such as `super::a::B`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Mention {
    pub(super) path: Vec<String>,
    pub(super) line: usize,
}

/// One leaf of a `use`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Import {
    /// The name that it gives; none for `*` and `as _`.
    pub(super) name: Option<String>,
    pub(super) glob: bool,
    pub(super) of: Mention,
}

/// A module: a file, or a `mod … { }` inside of one.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Module {
    /// Modules that stand in files of their own.
    pub(super) files: Vec<String>,
    pub(super) inline: Vec<(String, Module)>,
    pub(super) defined: Vec<String>,
    pub(super) imports: Vec<Import>,
    pub(super) mentions: Vec<Mention>,
}

const DEFINING: [&str; 9] =
    ["struct", "enum", "union", "trait", "fn", "const", "static", "type", "macro_rules"];
/// What an item may begin with, beside what defines a name.
const ITEM: [&str; 8] = ["pub", "mod", "use", "impl", "async", "unsafe", "extern", "macro_rules"];

impl Module {
    /// Reads the text of a file.
    pub(super) fn read(text: &str) -> Result<Self, LexError> {
        let tokens: TokenStream = text.parse()?;
        let mut module = Self::default();
        module.walk(&trees(tokens), true);
        Ok(module)
    }

    /// Goes through tokens; `top` tells that they are the module's own items and not the
    /// inside of one.
    fn walk(&mut self, trees: &[TokenTree], top: bool) {
        let mut at = 0;
        while at < trees.len() {
            let rest = &trees[at..];
            at += if is_left_out(rest) {
                length_of_item(rest)
            } else if let Some(length) = length_of_visibility(rest) {
                length
            } else if let Some(length) = self.declaration(rest) {
                length
            } else if let Some(length) = self.import(rest) {
                length
            } else if let Some(length) = self.mention(rest) {
                length
            } else {
                self.definition(rest, top);
                if let TokenTree::Group(group) = &rest[0] {
                    self.walk(&trees_of(group), false);
                }
                1
            };
        }
    }

    /// `mod name;` or `mod name { … }`.
    fn declaration(&mut self, trees: &[TokenTree]) -> Option<usize> {
        let [TokenTree::Ident(keyword), TokenTree::Ident(name), body, ..] = trees else {
            return None;
        };
        if keyword != "mod" {
            return None;
        }
        match body {
            TokenTree::Punct(_) => self.files.push(plain(name)),
            TokenTree::Group(group) => {
                let mut inline = Self::default();
                inline.walk(&trees_of(group), true);
                self.inline.push((plain(name), inline));
            }
            _ => return None,
        }
        Some(3)
    }

    /// `use …;`, but not the `use<…>` of a bound.
    fn import(&mut self, trees: &[TokenTree]) -> Option<usize> {
        if !is_word(trees, "use") || is_punct(trees.get(1), '<') {
            return None;
        }
        let end = trees.iter().position(|tree| is_punct(Some(tree), ';'))?;
        self.tree_of_imports(&[], &trees[1..end]);
        Some(end + 1)
    }

    fn tree_of_imports(&mut self, prefix: &[String], trees: &[TokenTree]) {
        for branch in trees.split(|tree| is_punct(Some(tree), ',')) {
            // `::name` names another crate.
            let Some(first) = branch.first().filter(|first| !is_punct(Some(first), ':')) else {
                continue;
            };
            let line = first.span().start().line;
            let mut path = prefix.to_vec();
            let mut renamed = None;
            let mut glob = false;
            let mut after_as = false;
            for tree in branch {
                match tree {
                    TokenTree::Ident(word) if after_as => renamed = Some(plain(word)),
                    TokenTree::Ident(word) if word == "as" => after_as = true,
                    TokenTree::Ident(word) => path.push(plain(word)),
                    TokenTree::Group(group) => {
                        self.tree_of_imports(&path, &trees_of(group));
                        path.clear();
                    }
                    tree => glob |= is_punct(Some(tree), '*'),
                }
            }
            // `a::{self}` is `a`.
            if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
                path.pop();
            }
            if path.is_empty() {
                continue;
            }
            let name = renamed.or_else(|| path.last().cloned()).filter(|_| !glob);
            let name = name.filter(|name| name != "_");
            self.imports.push(Import { name, glob, of: Mention { path, line } });
        }
    }

    /// A path of two words or more.
    fn mention(&mut self, trees: &[TokenTree]) -> Option<usize> {
        // The continuation of something that is no name, such as `Vec::<T>::new` or `::std`.
        if is_punct(trees.first(), ':') && is_punct(trees.get(1), ':') {
            return Some(if matches!(trees.get(2), Some(TokenTree::Ident(_))) { 3 } else { 2 });
        }
        let TokenTree::Ident(first) = trees.first()? else {
            return None;
        };
        let mut path = vec![plain(first)];
        let mut length = 1;
        while is_punct(trees.get(length), ':') && is_punct(trees.get(length + 1), ':') {
            let Some(TokenTree::Ident(word)) = trees.get(length + 2) else {
                break;
            };
            path.push(plain(word));
            length += 3;
        }
        if path.len() < 2 {
            return None;
        }
        self.mentions.push(Mention { path, line: first.span().start().line });
        Some(length)
    }

    fn definition(&mut self, trees: &[TokenTree], top: bool) {
        if !top || !DEFINING.iter().any(|keyword| is_word(trees, keyword)) {
            return;
        }
        let name = trees[1..].iter().find_map(|tree| match tree {
            TokenTree::Ident(name) if name != "mut" && name != "fn" => Some(plain(name)),
            _ => None,
        });
        self.defined.extend(name);
    }
}

/// Whether an item stands here that is not looked at: one for tests, or a module whose file belongs to
/// another crate.
fn is_left_out(trees: &[TokenTree]) -> bool {
    let [hash, TokenTree::Group(attribute), ..] = trees else {
        return false;
    };
    let text = attribute.stream().to_string().replace(' ', "");
    let is_test = text == "test" || text == "cfg(test)" || text.starts_with("cfg(all(test,");
    is_punct(Some(hash), '#') && (is_test || text.starts_with("path=\"../../"))
}

/// The attributes that stand here and the item, statement or field that they belong to.
fn length_of_item(trees: &[TokenTree]) -> usize {
    let mut start = 0;
    while is_punct(trees.get(start), '#') {
        start += 2;
    }
    let item = &trees[start.min(trees.len())..];
    let import = item.iter().take(3).any(|tree| is_word(std::slice::from_ref(tree), "use"));
    let is_item = ITEM.iter().chain(&DEFINING).any(|keyword| is_word(item, keyword));
    let end = item.iter().position(|tree| match tree {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace && !import,
        tree => is_punct(Some(tree), ';') || (is_punct(Some(tree), ',') && !is_item),
    });
    start + end.map_or(item.len(), |end| end + 1)
}

/// `pub(…)`.
fn length_of_visibility(trees: &[TokenTree]) -> Option<usize> {
    let [_, TokenTree::Group(group), ..] = trees else {
        return None;
    };
    (is_word(trees, "pub") && group.delimiter() == Delimiter::Parenthesis).then_some(2)
}

fn is_word(trees: &[TokenTree], word: &str) -> bool {
    matches!(trees.first(), Some(TokenTree::Ident(found)) if found == word)
}

fn is_punct(tree: Option<&TokenTree>, punct: char) -> bool {
    matches!(tree, Some(TokenTree::Punct(found)) if found.as_char() == punct)
}

fn plain(name: &proc_macro2::Ident) -> String {
    name.to_string().trim_start_matches("r#").to_owned()
}

fn trees(tokens: TokenStream) -> Vec<TokenTree> {
    tokens.into_iter().collect()
}

fn trees_of(group: &proc_macro2::Group) -> Vec<TokenTree> {
    trees(group.stream())
}
