//! A tree as text again.
//!
//! Comprehensions are printed as the macros that they came from, so that what is printed can be read.

use std::fmt::Write as _;

use crate::ast::{Call, Comprehension, Expr, Form, Kind, Literal};

/// The text of a tree; reading it gives the same tree, numbers and positions aside.
pub(crate) fn print(expr: &Expr) -> String {
    let mut out = String::new();
    write_expr(expr, &mut out);
    out
}

fn write_expr(expr: &Expr, out: &mut String) {
    match &expr.kind {
        Kind::Unreadable => out.push_str("<unreadable>"),
        Kind::Literal(literal) => write_literal(literal, out),
        Kind::Ident(name) => out.push_str(name),
        Kind::Select(select) => {
            out.push_str(if select.test { "has(" } else { "" });
            write_operand(&select.operand, out);
            let _ = write!(out, ".{}", select.field);
            out.push_str(if select.test { ")" } else { "" });
        }
        Kind::Call(call) => write_call(call, out),
        Kind::List(elements) => {
            write_all("[", elements, "]", out, |element, out| {
                out.push_str(if element.optional { "?" } else { "" });
                write_expr(&element.value, out);
            });
        }
        Kind::Map(entries) => {
            write_all("{", entries, "}", out, |entry, out| {
                out.push_str(if entry.optional { "?" } else { "" });
                write_expr(&entry.key, out);
                out.push_str(": ");
                write_expr(&entry.value, out);
            });
        }
        Kind::Struct(construction) => {
            out.push_str(&construction.name);
            write_all("{", &construction.fields, "}", out, |field, out| {
                let mark = if field.optional { "?" } else { "" };
                let _ = write!(out, "{mark}{}: ", field.name);
                write_expr(&field.value, out);
            });
        }
        Kind::Comprehension(comprehension) => write_comprehension(comprehension, out),
    }
}

fn write_all<T>(
    open: &str,
    items: &[T],
    close: &str,
    out: &mut String,
    mut each: impl FnMut(&T, &mut String),
) {
    out.push_str(open);
    for (at, item) in items.iter().enumerate() {
        out.push_str(if at > 0 { ", " } else { "" });
        each(item, out);
    }
    out.push_str(close);
}

/// Between parentheses unless it is read as one part anyway.
fn write_operand(expr: &Expr, out: &mut String) {
    let one = match &expr.kind {
        Kind::Call(call) => {
            call.function.starts_with(|c: char| c.is_ascii_alphabetic())
                || matches!(&*call.function, "_[_]" | "_[?_]" | "_?._")
        }
        Kind::Literal(Literal::Int(number)) => *number >= 0,
        Kind::Literal(Literal::Double(number)) => number.is_sign_positive(),
        _ => true,
    };
    if one {
        return write_expr(expr, out);
    }
    out.push('(');
    write_expr(expr, out);
    out.push(')');
}

fn write_args(args: &[Expr], out: &mut String) {
    write_all("(", args, ")", out, write_expr);
}

fn write_call(call: &Call, out: &mut String) {
    if let Some(target) = &call.target {
        write_operand(target, out);
        let _ = write!(out, ".{}", call.function);
        return write_args(&call.args, out);
    }
    match (&*call.function, call.args.as_slice()) {
        ("_?_:_", [condition, yes, no]) => {
            write_operand(condition, out);
            out.push_str(" ? ");
            write_operand(yes, out);
            out.push_str(" : ");
            write_operand(no, out);
        }
        ("_[_]", [operand, index]) => write_index(operand, "[", index, out),
        ("_[?_]", [operand, index]) => write_index(operand, "[?", index, out),
        ("_?._", [operand, Expr { kind: Kind::Literal(Literal::String(field)), .. }]) => {
            write_operand(operand, out);
            let _ = write!(out, ".?{field}");
        }
        (function @ ("!_" | "-_"), [operand]) => {
            out.push_str(&function[..1]);
            out.push('(');
            write_expr(operand, out);
            out.push(')');
        }
        (function, args) => match function.trim_matches('_') {
            _ if !function.starts_with(['_', '@']) => {
                out.push_str(function);
                write_args(args, out);
            }
            mark => {
                let mark = mark.trim_start_matches('@');
                for (at, arg) in args.iter().enumerate() {
                    if at > 0 {
                        let _ = write!(out, " {mark} ");
                    }
                    write_operand(arg, out);
                }
            }
        },
    }
}

fn write_index(operand: &Expr, open: &str, index: &Expr, out: &mut String) {
    write_operand(operand, out);
    out.push_str(open);
    write_expr(index, out);
    out.push(']');
}

fn write_literal(literal: &Literal, out: &mut String) {
    match literal {
        Literal::Null => out.push_str("null"),
        Literal::Bool(answer) => {
            let _ = write!(out, "{answer}");
        }
        Literal::Int(number) => {
            let _ = write!(out, "{number}");
        }
        Literal::Uint(number) => {
            let _ = write!(out, "{number}u");
        }
        Literal::Double(number) => {
            let _ = write!(out, "{number:?}");
        }
        Literal::String(text) => {
            out.push('"');
            text.chars().for_each(|c| write_char(c, out));
            out.push('"');
        }
        Literal::Bytes(bytes) => {
            out.push_str("b\"");
            for byte in bytes.iter() {
                let _ = write!(out, "\\x{byte:02x}");
            }
            out.push('"');
        }
    }
}

fn write_char(c: char, out: &mut String) {
    match c {
        '"' | '\\' => {
            out.push('\\');
            out.push(c);
        }
        c if c.is_control() => {
            let _ = write!(out, "\\U{:08x}", u32::from(c));
        }
        c => out.push(c),
    }
}

fn write_comprehension(c: &Comprehension, out: &mut String) {
    if c.form == Form::Bind {
        let _ = write!(out, "cel.bind({}, ", c.accumulator);
        write_expr(&c.init, out);
        out.push_str(", ");
        write_expr(&c.result, out);
        out.push(')');
        return;
    }
    let Kind::Call(step) = &c.step.kind else { return };
    let (filter, insert) = match (c.form, &*step.function) {
        (Form::List | Form::Map | Form::MapEntry, "_?_:_") => (Some(&step.args[0]), &step.args[1]),
        _ => (None, &c.step),
    };
    let Kind::Call(insert) = &insert.kind else { return };
    let body = match (c.form, insert.args.last().map(|last| &last.kind)) {
        (Form::ExistsOne, _) => &step.args[0],
        (Form::List, Some(Kind::List(one))) => &one[0].value,
        _ => &insert.args[insert.args.len() - 1],
    };
    let name = match c.form {
        Form::All => "all",
        Form::Exists => "exists",
        Form::ExistsOne => "exists_one",
        Form::List if c.second.is_some() => "transformList",
        Form::List => "map",
        Form::Map => "transformMap",
        _ => "transformMapEntry",
    };
    write_operand(&c.range, out);
    let _ = write!(out, ".{name}({}", c.variable);
    if let Some(second) = &c.second {
        let _ = write!(out, ", {second}");
    }
    for part in filter.into_iter().chain([body]) {
        out.push_str(", ");
        write_expr(part, out);
    }
    out.push(')');
}
