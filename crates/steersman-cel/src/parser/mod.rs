//! Text to tree, macros expanded on the way.
//!
//! One function per level of the grammar would be deep; operators of two sides are read by
//! precedence instead. Nesting is bounded as in cel-go, so nothing after this recurses without bound.

mod lexer;
mod literals;
mod macros;
mod unescape;

use std::sync::Arc;

use crate::ast::{Ast, Call, Expr, Id, Kind, Literal, Select};
use crate::source::{Issues, NOWHERE, Reporter};
use crate::words::RESERVED;
use lexer::{Lexeme, Token};

/// How deep an expression may nest.
const DEPTH_MAX: u32 = 250;
/// How many characters an expression may have.
const SIZE_MAX: usize = 100_000;
/// How many nodes macros may copy. cel-go has no such bound: a chain of 25 `optMap`s, of 400 characters,
/// takes it gigabytes. Six links of one take two hundred, eight take less than a thousand.
const COPIED_MAX: usize = 4096;

/// How strong `==`, `<` and the like bind; `||` and `&&` bind weaker.
const RELATION: u8 = 2;

/// What an expression starts with, and marks that may stand there instead, in ANTLR's order.
const STARTS: [(&str, bool); 20] = [
    ("'['", true),
    ("']'", false),
    ("'{'", true),
    ("'}'", false),
    ("'('", true),
    ("')'", false),
    ("'.'", true),
    ("','", false),
    ("'-'", true),
    ("'!'", true),
    ("'?'", false),
    ("'true'", true),
    ("'false'", true),
    ("'null'", true),
    ("NUM_FLOAT", true),
    ("NUM_INT", true),
    ("NUM_UINT", true),
    ("STRING", true),
    ("BYTES", true),
    ("IDENTIFIER", true),
];

/// What could stand instead of something that cannot.
fn starts(others: &str) -> String {
    let names =
        STARTS.iter().filter(|(name, always)| *always || others.contains(name.trim_matches('\'')));
    let names: Vec<&str> = names.map(|(name, _)| *name).collect();
    format!("{{{}}}", names.join(", "))
}

/// What the syntax offers beside the standard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Syntax {
    /// `.?`, `[?]`, `optMap`, `optFlatMap`.
    pub(crate) optionals: bool,
    /// Names between backquotes.
    pub(crate) escaped_names: bool,
    /// `all`, `exists`, … over key and value.
    pub(crate) two_variables: bool,
    /// `cel.bind`.
    pub(crate) bindings: bool,
    /// `math.least`, `math.greatest`.
    pub(crate) math: bool,
    /// `sortBy`.
    pub(crate) lists: bool,
}

/// Reads an expression.
pub(crate) fn parse(text: &str, syntax: Syntax) -> Result<Ast, Issues> {
    let mut reporter = Reporter::new(text);
    let size = text.chars().count();
    if size > SIZE_MAX {
        let message =
            format!("expression code point size exceeds limit: size: {size}, limit {SIZE_MAX}");
        reporter.report(NOWHERE, message);
        return Err(Issues { issues: reporter.issues });
    }
    let tokens = lexer::tokens(text, &mut reporter);
    let mut parser = Parser {
        tokens,
        at: 0,
        depth: 0,
        offsets: vec![NOWHERE],
        reporter,
        syntax,
        given_up: false,
        copied: 0,
        besides: "",
    };
    let root = parser.whole();
    let offsets = std::mem::take(&mut parser.offsets);
    parser.reporter.finish()?;
    Ok(Ast { root, offsets })
}

/// Reading one text. `None` from a reading function means that an issue was reported and reading
/// ends: there is no going on after a syntax error.
struct Parser<'t, 'r> {
    tokens: Vec<Lexeme<'t>>,
    at: usize,
    /// How many levels of the expression are being read.
    depth: u32,
    offsets: Vec<u32>,
    reporter: Reporter<'r>,
    syntax: Syntax,
    given_up: bool,
    /// How many nodes macros have copied.
    copied: usize,
    /// Marks that could stand where an expression is about to start.
    besides: &'static str,
}

/// A node and how many levels are below it.
type Read = Option<(Expr, u32)>;

impl<'t> Parser<'t, '_> {
    fn whole(&mut self) -> Expr {
        let read = self.expression();
        if let Some((root, _)) = read {
            let next = self.peek();
            if next.token == Token::End || self.given_up {
                return root;
            }
            let last = self.tokens.get(self.at + 1).is_none_or(|after| after.token == Token::End);
            let word = if last { "extraneous" } else { "mismatched" };
            let message = format!("Syntax error: {word} input '{}' expecting <EOF>", next.text);
            self.reporter.report(next.offset, message);
        }
        Expr { id: 0, kind: Kind::Unreadable }
    }

    fn peek(&self) -> Lexeme<'t> {
        self.tokens[self.at]
    }

    fn next(&mut self) -> Lexeme<'t> {
        let lexeme = self.tokens[self.at];
        if lexeme.token != Token::End {
            self.at += 1;
        }
        lexeme
    }

    fn is(&self, mark: &str) -> bool {
        matches!(self.peek().token, Token::Mark(text) if text == mark)
    }

    fn accept(&mut self, mark: &str) -> Option<Lexeme<'t>> {
        self.is(mark).then(|| self.next())
    }

    fn expect(&mut self, mark: &str) -> Option<Lexeme<'t>> {
        if let Some(found) = self.accept(mark) {
            return Some(found);
        }
        self.mismatch(&format!("'{mark}'"))
    }

    fn mismatch<T>(&mut self, expected: &str) -> Option<T> {
        let found = self.peek();
        self.given_up = true;
        let message =
            format!("Syntax error: mismatched input '{}' expecting {expected}", found.text);
        self.reporter.report(found.offset, message);
        None
    }

    /// No expression starts here. If one starts behind the token, the token is too much.
    fn unexpected<T>(&mut self) -> Option<T> {
        let expected = starts(self.besides);
        let starts = |lexeme: &Lexeme<'_>| match lexeme.token {
            Token::Mark(mark) => "[{(.-!".contains(mark) || self.besides.contains(mark),
            Token::End | Token::In | Token::EscapedIdent => false,
            _ => true,
        };
        let found = self.peek();
        let extraneous =
            found.token != Token::End && self.tokens.get(self.at + 1).is_some_and(starts);
        if !extraneous {
            let read: Option<T> = self.mismatch(&expected);
            self.nothing_behind(found);
            return read;
        }
        self.given_up = true;
        let message =
            format!("Syntax error: extraneous input '{}' expecting {expected}", found.text);
        self.reporter.report(found.offset, message);
        None
    }

    /// If an operator stands last, where it cannot, nothing stands behind it either.
    fn nothing_behind(&mut self, found: Lexeme<'_>) {
        let end = self.tokens.get(self.at + 1).copied();
        let last = end.filter(|next| next.token == Token::End);
        if let Some(end) = last.filter(|_| operator(&found).is_some()) {
            let message =
                format!("Syntax error: mismatched input '<EOF>' expecting {}", starts(""));
            self.reporter.report(end.offset, message);
        }
    }

    /// A mark that must come, or a comma.
    fn close(&mut self, mark: &str) -> Option<()> {
        if self.accept(mark).is_some() {
            return Some(());
        }
        self.mismatch(&format!("{{'{mark}', ','}}"))
    }

    /// An expression where one of some marks could stand as well.
    fn expression_or(&mut self, besides: &'static str) -> Read {
        self.besides = besides;
        let read = self.expression();
        self.besides = "";
        read
    }

    fn too_deep<T>(&mut self) -> Option<T> {
        self.given_up = true;
        let message = format!("expression recursion limit exceeded: {DEPTH_MAX}");
        self.reporter.report(NOWHERE, message);
        None
    }

    fn id(&mut self, offset: u32) -> Id {
        self.offsets.push(offset);
        u32::try_from(self.offsets.len() - 1).unwrap_or(u32::MAX)
    }

    fn node(&mut self, offset: u32, kind: Kind) -> Expr {
        Expr { id: self.id(offset), kind }
    }

    /// One level up, or the end of reading if that is too many.
    fn above(&mut self, expr: Expr, below: u32) -> Read {
        if below >= DEPTH_MAX {
            self.given_up = true;
            self.reporter.report(NOWHERE, "max recursion depth exceeded");
            return None;
        }
        Some((expr, below + 1))
    }

    /// `a ? b : c`, and all that binds stronger.
    fn expression(&mut self) -> Read {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return self.too_deep();
        }
        let (mut expr, mut below) = self.binary(0)?;
        if let Some(mark) = self.accept("?") {
            let id = self.id(mark.offset);
            let (yes, below_yes) = self.binary(0)?;
            self.expect(":")?;
            let (no, below_no) = self.expression()?;
            let conditional = call(id, "_?_:_", vec![expr, yes, no]);
            (expr, below) = self.above(conditional, below.max(below_yes).max(below_no))?;
        }
        self.depth -= 1;
        Some((expr, below))
    }

    /// Operators of two sides whose precedence is at least the given one.
    fn binary(&mut self, precedence: u8) -> Read {
        let (mut left, mut below) = self.operand()?;
        while let Some((function, strength)) = operator(&self.peek()) {
            if strength < precedence {
                break;
            }
            let mark = self.next();
            let id = self.id(mark.offset);
            if strength < RELATION {
                (left, below) =
                    self.chain(call(id, function, vec![left]), mark.text, strength, below)?;
                continue;
            }
            let (right, deep) = self.binary(strength + 1)?;
            (left, below) = self.above(call(id, function, vec![left, right]), below.max(deep))?;
        }
        Some((left, below))
    }

    /// The other terms of a chain of `&&` or `||`. cel-go balances them: they add no depth that
    /// counts.
    fn chain(&mut self, mut chain: Expr, mark: &str, strength: u8, mut below: u32) -> Read {
        loop {
            let (next, deep) = self.binary(strength + 1)?;
            below = below.max(deep);
            if let Kind::Call(call) = &mut chain.kind {
                call.args.push(next);
            }
            if self.accept(mark).is_none() {
                return Some((chain, below));
            }
        }
    }

    /// Something with its signs in front and its selections behind.
    fn operand(&mut self) -> Read {
        let first = self.peek();
        let mark = match first.token {
            Token::Mark(mark @ "!") => Some(mark),
            Token::Mark(mark @ "-") if !self.negative_number() => Some(mark),
            _ => None,
        };
        let mut odd = false;
        while let Some(mark) = mark
            && self.is(mark)
        {
            self.next();
            odd = !odd;
        }
        let id = odd.then(|| self.id(first.offset));
        let (mut expr, mut below) = self.primary()?;
        loop {
            if let Some(dot) = self.accept(".") {
                (expr, below) = self.field_or_method(dot.offset, expr, below)?;
            } else if let Some(bracket) = self.accept("[") {
                (expr, below) = self.index(bracket.offset, expr, below)?;
            } else if self.is("{") && expr.qualified_name().is_some() {
                (expr, below) = self.construction(&expr)?;
            } else {
                break;
            }
        }
        let (Some(id), Some(mark)) = (id, mark) else {
            return Some((expr, below));
        };
        let function = if mark == "!" { "!_" } else { "-_" };
        self.above(call(id, function, vec![expr]), below)
    }

    /// Whether the next token is a minus that belongs to a number.
    fn negative_number(&self) -> bool {
        self.is("-")
            && self
                .tokens
                .get(self.at + 1)
                .is_some_and(|t| matches!(t.token, Token::Int | Token::Double))
    }

    fn field_or_method(&mut self, dot: u32, operand: Expr, below: u32) -> Read {
        let optional = self.accept("?").is_some();
        if optional && !self.syntax.optionals {
            self.reporter.report(dot, "unsupported syntax '.?'");
            return None;
        }
        let name = self.peek();
        match name.token {
            Token::Ident => {
                self.next();
            }
            Token::EscapedIdent => {
                self.next();
                if !self.syntax.escaped_names {
                    self.reporter.report(name.offset, "unsupported syntax: '`'");
                    return None;
                }
                return self.selection(
                    dot,
                    operand,
                    (unquoted(name.text), name.offset, optional),
                    below,
                );
            }
            Token::True | Token::False | Token::Null => {
                self.reporter.report(
                    name.offset,
                    format!("Syntax error: mismatched input '{}' expecting IDENTIFIER", name.text),
                );
                return None;
            }
            _ => {
                let text = if name.token == Token::End { "" } else { name.text };
                let message = format!("Syntax error: no viable alternative at input '.{text}'");
                self.reporter.report(name.offset, message);
                self.nothing_behind(name);
                return None;
            }
        }
        if let Some(open) = (!optional).then(|| self.accept("(")).flatten() {
            let id = self.id(open.offset);
            let (args, deep) = self.arguments(")")?;
            let expr = self.method(id, name.text, operand, args);
            return self.above(expr, below.max(deep));
        }
        self.selection(dot, operand, (name.text.into(), name.offset, optional), below)
    }

    fn selection(
        &mut self,
        dot: u32,
        operand: Expr,
        (name, offset, optional): (Arc<str>, u32, bool),
        below: u32,
    ) -> Read {
        let expr = if optional {
            let field = self.node(offset, Kind::Literal(Literal::String(name)));
            let id = self.id(dot);
            call(id, "_?._", vec![operand, field])
        } else {
            let select = Select { operand, field: name, test: false };
            self.node(dot, Kind::Select(Box::new(select)))
        };
        self.above(expr, below)
    }

    fn index(&mut self, bracket: u32, operand: Expr, below: u32) -> Read {
        let optional = self.accept("?").is_some();
        if optional && !self.syntax.optionals {
            self.reporter.report(bracket, "unsupported syntax '[?'");
            return None;
        }
        let id = self.id(bracket);
        let (index, deep) = self.expression_or("?")?;
        self.closing("]")?;
        let function = if optional { "_[?_]" } else { "_[_]" };
        self.above(call(id, function, vec![operand, index]), below.max(deep))
    }

    fn arguments(&mut self, close: &str) -> Option<(Vec<Expr>, u32)> {
        let mut args = Vec::new();
        let mut below = 0;
        if self.accept(close).is_some() {
            return Some((args, below));
        }
        loop {
            let besides = if args.is_empty() { ")" } else { "" };
            let (arg, deep) = self.expression_or(besides)?;
            below = below.max(deep);
            args.push(arg);
            if self.accept(",").is_none() {
                self.close(close)?;
                return Some((args, below));
            }
        }
    }

    fn primary(&mut self) -> Read {
        let lexeme = self.peek();
        if matches!(lexeme.token, Token::Mark("(" | "[" | "{" | ".") | Token::Ident) {
            self.besides = "";
        }
        match lexeme.token {
            Token::Mark("(") => {
                self.next();
                let read = self.expression()?;
                self.closing(")")?;
                Some(read)
            }
            Token::Mark("[") => self.list(),
            Token::Mark("{") => self.map(),
            Token::Mark(".") => {
                self.next();
                self.name(true)
            }
            Token::Ident => self.name(false),
            _ => self.literal(),
        }
    }

    /// A closing mark; if what stands there could follow one, it is missing.
    fn closing(&mut self, mark: &str) -> Option<()> {
        if self.accept(mark).is_some() {
            return Some(());
        }
        let found = self.peek();
        let behind = self.tokens.get(self.at + 1).map(|next| next.token);
        let message = match found.token {
            Token::End => format!("Syntax error: missing '{mark}' at '<EOF>'"),
            _ if matches!(behind, Some(Token::Mark(next)) if next == mark) => {
                format!("Syntax error: extraneous input '{}' expecting '{mark}'", found.text)
            }
            _ => return self.mismatch(&format!("'{mark}'")),
        };
        self.given_up = true;
        self.reporter.report(found.offset, message);
        None
    }

    fn name(&mut self, leading_dot: bool) -> Read {
        let lexeme = self.peek();
        if lexeme.token != Token::Ident {
            return self.mismatch("IDENTIFIER");
        }
        self.next();
        let construction = self.tokens_make_construction();
        if RESERVED.contains(&lexeme.text) && !construction {
            self.reporter.report(lexeme.offset, format!("reserved identifier: {}", lexeme.text));
        }
        let name: Arc<str> =
            if leading_dot { format!(".{}", lexeme.text).into() } else { lexeme.text.into() };
        if let Some(open) = self.accept("(") {
            let id = self.id(open.offset);
            let (args, below) = self.arguments(")")?;
            let expr = self.function(id, &name, args);
            return self.above(expr, below);
        }
        Some((self.node(lexeme.offset, Kind::Ident(name)), 0))
    }

    /// Whether `.a.b{` follows.
    fn tokens_make_construction(&self) -> bool {
        let mut at = self.at;
        while matches!(self.tokens[at].token, Token::Mark("."))
            && self.tokens.get(at + 1).is_some_and(|t| t.token == Token::Ident)
        {
            at += 2;
        }
        matches!(self.tokens[at].token, Token::Mark("{"))
    }
}

pub(crate) fn call(id: Id, function: &str, args: Vec<Expr>) -> Expr {
    Expr { id, kind: Kind::Call(Box::new(Call { function: function.into(), target: None, args })) }
}

fn unquoted(text: &str) -> Arc<str> {
    text.trim_matches('`').into()
}

fn operator(lexeme: &Lexeme<'_>) -> Option<(&'static str, u8)> {
    let mark = match lexeme.token {
        Token::In => return Some(("@in", RELATION)),
        Token::Mark(mark) => mark,
        _ => return None,
    };
    Some(match mark {
        "||" => ("_||_", 0),
        "&&" => ("_&&_", 1),
        "==" => ("_==_", RELATION),
        "!=" => ("_!=_", RELATION),
        "<" => ("_<_", RELATION),
        "<=" => ("_<=_", RELATION),
        ">" => ("_>_", RELATION),
        ">=" => ("_>=_", RELATION),
        "+" => ("_+_", 3),
        "-" => ("_-_", 3),
        "*" => ("_*_", 4),
        "/" => ("_/_", 4),
        "%" => ("_%_", 4),
        _ => return None,
    })
}
