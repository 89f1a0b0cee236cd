//! What calls can cost.

use super::{CallEstimate, Coster, Estimate, Part};
use crate::ast::{Expr, Kind, Literal};
use crate::program::cost::{
    AUTHORIZATION, LIST_CREATE, PATTERN, STRUCT_CREATE, TRAVERSAL, is_nominal,
};
use crate::shape::Type;

/// A call: its node, its function, one of its overloads.
type Called<'n, 'e> = (&'e Expr, &'n str, &'n str);
type Args<'e> = [(Estimate, Part<'e>)];

/// How long the pattern of a named format is said to be.
const FORMAT_PATTERN: f64 = 128.0;
const FORMAT_SIZE: u64 = 64;
const ONE: Estimate = Estimate { min: 1, max: 1 };

fn of(cost: Estimate) -> CallEstimate {
    CallEstimate { cost, size: None }
}

fn sized(cost: Estimate, size: Estimate) -> CallEstimate {
    CallEstimate { cost, size: Some(size) }
}

impl<'c> Coster<'c> {
    pub(super) fn function(
        &mut self,
        called: Called<'_, 'c>,
        target: Option<&Part<'c>>,
        args: &Args<'c>,
    ) -> CallEstimate {
        let given = args.iter().fold(Estimate::default(), |sum, (cost, _)| sum.plus(*cost));
        let own = self.extension(called.2, target, args).or_else(|| {
            let kubernetes = self.env.kubernetes_costs;
            kubernetes.then(|| self.of_kubernetes(called, target, args)).flatten()
        });
        if let Some(own) = own {
            return CallEstimate { cost: own.cost.plus(given), size: own.size };
        }
        match called.2 {
            // These include what their arguments cost.
            "logical_or" | "logical_and" => {
                let min = args.first().map_or(0, |(cost, _)| cost.min);
                of(Estimate { min, max: given.max })
            }
            "conditional" => self.conditional(called.0, args),
            _ => {
                let own = self.standard(called, target, args);
                CallEstimate { cost: own.cost.plus(given), size: own.size }
            }
        }
    }

    fn conditional(&mut self, expr: &Expr, args: &Args<'c>) -> CallEstimate {
        let [(condition, _), (yes_cost, yes), (no_cost, no)] = args else { return of(ONE) };
        let size = known(yes).union(known(no));
        let entry = |part: &Part<'c>| part.expr.and_then(|expr| self.entry_size(expr));
        if let (Some(a), Some(b)) = (entry(yes), entry(no)) {
            self.entries.insert(expr.id, a.union(b));
        }
        sized(condition.plus(yes_cost.union(*no_cost)), size)
    }

    /// cel-go's own functions.
    fn standard(
        &mut self,
        called: Called<'_, 'c>,
        target: Option<&Part<'c>>,
        args: &Args<'c>,
    ) -> CallEstimate {
        let arg = |at: usize| args.get(at).map_or(Estimate::UNKNOWN, |(_, part)| known(part));
        match (called.2, target) {
            ("string_format", Some(target)) => of(known(target).scaled(TRAVERSAL)),
            ("string_to_bytes", _) => {
                let size = arg(0);
                sized(
                    size.scaled(TRAVERSAL),
                    Estimate { min: size.min, max: size.max.wrapping_mul(4) },
                )
            }
            ("bytes_to_string", _) => {
                let size = arg(0);
                sized(size.scaled(TRAVERSAL), Estimate { min: size.min / 4, max: size.max })
            }
            ("strings_quote", _) => {
                let size = arg(0);
                let max = size.max.wrapping_mul(2).wrapping_add(2);
                sized(size.scaled(TRAVERSAL), Estimate { min: size.min.wrapping_add(2), max })
            }
            ("starts_with_string" | "ends_with_string", _) => of(arg(0).scaled(TRAVERSAL)),
            ("in_list", _) => of(arg(1).scaled(1.0)),
            ("matches_string", Some(target)) => of(matched(known(target), arg(0))),
            ("contains_string", Some(target)) => {
                of(known(target).scaled(TRAVERSAL).times(arg(0).scaled(TRAVERSAL)))
            }
            ("add_string" | "add_bytes" | "add_list", _) => self.sum(called, args),
            (
                "less_string"
                | "greater_string"
                | "less_equals_string"
                | "greater_equals_string"
                | "less_bytes"
                | "greater_bytes"
                | "less_equals_bytes"
                | "greater_equals_bytes"
                | "equals"
                | "not_equals",
                _,
            ) => {
                let max = arg(0).max.min(arg(1).max);
                of(Estimate { min: u64::from(max > 0), max }.scaled(TRAVERSAL))
            }
            _ => of(ONE),
        }
    }

    fn sum(&mut self, (expr, _, overload): Called<'_, 'c>, args: &Args<'c>) -> CallEstimate {
        let [(_, first), (_, second)] = args else { return of(ONE) };
        let size = known(first).plus(known(second));
        let entry = |part: &Part<'c>| part.expr.and_then(|expr| self.entry_size(expr));
        if let (Some(a), Some(b)) = (entry(first), entry(second)) {
            self.entries.insert(expr.id, a.union(b));
        }
        if overload == "add_list" { sized(ONE, size) } else { sized(size.scaled(TRAVERSAL), size) }
    }

    /// The size of a part: computed, or declared for where it lies.
    fn extent(&self, part: &Part<'_>) -> Estimate {
        part.size.or_else(|| self.declared(&part.path)).unwrap_or(Estimate::UNKNOWN)
    }

    /// What cel-go's extensions say themselves.
    fn extension(
        &self,
        overload: &str,
        target: Option<&Part<'c>>,
        args: &Args<'c>,
    ) -> Option<CallEstimate> {
        let list = |factor: f64, size: Estimate| {
            sized(size.scaled(factor).plus(Estimate::fixed(1 + LIST_CREATE)), size)
        };
        let literal = |at: usize, otherwise: u64| match args.get(at).and_then(|(_, part)| part.expr)
        {
            Some(Expr { kind: Kind::Literal(Literal::Int(number)), .. }) => {
                u64::try_from(*number).unwrap_or(0)
            }
            _ => otherwise,
        };
        let sets = |factor: f64| {
            let [(_, first), (_, second)] = args else { return None };
            let pairs = self.extent(first).times(self.extent(second));
            Some(of(pairs.scaled(factor).plus(ONE)))
        };
        Some(match (overload, target) {
            ("list_slice", Some(target)) => {
                let end = literal(1, self.extent(target).max);
                list(1.0, Estimate::fixed(end.wrapping_sub(literal(0, 0))))
            }
            ("lists_range", None) => list(1.0, Estimate::fixed(literal(0, u64::MAX))),
            ("list_reverse", Some(target)) => list(1.0, self.extent(target)),
            ("list_flatten" | "list_flatten_int", Some(target)) => {
                let depth = if args.is_empty() { 1 } else { literal(0, u64::MAX) };
                list(depth as f64, self.extent(target))
            }
            ("list_distinct", Some(target)) => {
                let size = self.extent(target);
                list(2.0, size.times(size))
            }
            (id, Some(target)) if id.starts_with("list_") && id.ends_with("_sort") => {
                self.sorted(id, target, list)
            }
            (id, Some(_)) if id.ends_with("_sortByAssociatedKeys") => {
                self.sorted(id, &args.first()?.1, list)
            }
            ("list_sets_contains_list" | "list_sets_intersects_list", _) => return sets(1.0),
            ("list_sets_equivalent_list", _) => return sets(2.0),
            _ => return None,
        })
    }

    fn sorted(
        &self,
        overload: &str,
        keys: &Part<'c>,
        list: impl Fn(f64, Estimate) -> CallEstimate,
    ) -> CallEstimate {
        let size = self.extent(keys);
        let textual = overload.starts_with("list_string_") || overload.starts_with("list_bytes_");
        list(if textual { 2.0 + TRAVERSAL } else { 2.0 }, size.times(size))
    }

    /// The elements of a list as a part: what is declared for them is found by their path.
    fn items(&self, list: &Part<'c>) -> Option<Part<'c>> {
        let ty = match &list.ty {
            Type::List(of) => (**of).clone(),
            Type::Map(of) => of.0.clone(),
            Type::Opaque(_, params) => params.first()?.clone(),
            _ => return None,
        };
        let mut path = list.path.clone();
        if !path.is_empty() {
            path.push("@items".into());
        }
        Some(Part { path, ty, expr: None, size: None })
    }

    fn of_kubernetes(
        &self,
        (_, function, overload): Called<'_, 'c>,
        target: Option<&Part<'c>>,
        args: &Args<'c>,
    ) -> Option<CallEstimate> {
        let arg = |at: usize| args.get(at).map(|(_, part)| self.extent(part));
        let traversed = |size: Estimate| size.scaled(TRAVERSAL);
        Some(match function {
            "check" => of(Estimate::fixed(AUTHORIZATION)),
            name if is_nominal(name) => of(ONE),
            "fieldSelector" | "labelSelector" => {
                let length = arg(0)?;
                let each = (LIST_CREATE + STRUCT_CREATE) as f64;
                let requirements = length.scaled(0.5).scaled(each);
                of(Estimate::fixed(LIST_CREATE).plus(traversed(length)).plus(requirements))
            }
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => {
                self.searched(target?)
            }
            "url" | "jsonpatch.escapeKey" => sized(traversed(arg(0)?), arg(0)?),
            "lowerAscii" | "upperAscii" | "substring" | "trim" => {
                let size = self.extent(target?);
                sized(traversed(size), size)
            }
            "replace" => self.replaced(target?, arg(0)?, arg(1)?),
            "split" => {
                let size = self.extent(target?);
                let max = match args.get(1).and_then(|(_, part)| part.expr) {
                    Some(Expr { kind: Kind::Literal(Literal::Int(number)), .. }) => {
                        number.cast_unsigned()
                    }
                    _ => size.max,
                };
                sized(size.scaled(2.0 * TRAVERSAL), Estimate { min: 0, max })
            }
            "join" => self.joined(target?, arg(0)),
            "find" | "findAll" => {
                let size = self.extent(target?);
                sized(matched(size, arg(0)?), Estimate { min: 0, max: size.max })
            }
            "ip" if overload == "cidr_ip" => of(ONE),
            "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver"
            | "isSemver" => of(traversed(arg(0)?)),
            "ip.isCanonical" => of(arg(0)?.scaled(2.0 * TRAVERSAL)),
            "containsIP" | "containsCIDR" => of(within(function, overload, arg(0)?)),
            "validate" => of(traversed(arg(0)?).scaled(FORMAT_PATTERN * PATTERN)),
            "_==_" => return equality(args),
            _ => return None,
        })
    }

    fn searched(&self, list: &Part<'c>) -> CallEstimate {
        let Some(items) = self.items(list) else {
            return of(self.extent(list).scaled(TRAVERSAL));
        };
        let mut each = ONE;
        if matches!(items.ty, Type::String | Type::Bytes) {
            each = each.plus(self.extent(&items).scaled(TRAVERSAL));
        }
        of(self.extent(list).times(each))
    }

    fn joined(&self, list: &Part<'c>, separator: Option<Estimate>) -> CallEstimate {
        let count = self.extent(list);
        let mut size = Estimate::default();
        if let Some(items) = self.items(list) {
            size = count.times(self.extent(&items));
        }
        if let Some(separator) = separator {
            let between =
                Estimate { min: count.min.saturating_sub(1), max: count.max.saturating_sub(1) };
            size = size.plus(separator.times(between));
        }
        sized(size.scaled(TRAVERSAL), size)
    }

    fn replaced(&self, text: &Part<'c>, old: Estimate, new: Estimate) -> CallEstimate {
        let text = self.extent(text);
        let parts = |whole: u64, part: u64| (whole as f64 / part as f64).ceil() as u64;
        // Nothing is found between all characters.
        let (most, kept_most) = if old.min == 0 {
            (text.max.saturating_add(1), text.max)
        } else if new.max <= old.min {
            (0, text.max)
        } else {
            (parts(text.max, old.min), 0)
        };
        let (least, kept_least) = if old.max == 0 {
            (text.min.saturating_add(1), text.min)
        } else if old.max <= new.min {
            (0, text.min)
        } else {
            (parts(text.min, old.max), 0)
        };
        let count = Estimate { min: least, max: most };
        let kept = Estimate { min: kept_least, max: kept_most };
        sized(text.scaled(2.0 * TRAVERSAL), count.times(new).plus(kept))
    }
}

fn known(part: &Part<'_>) -> Estimate {
    part.size.unwrap_or(Estimate::UNKNOWN)
}

fn matched(text: Estimate, pattern: Estimate) -> Estimate {
    text.plus(ONE).scaled(TRAVERSAL).times(pattern.scaled(PATTERN))
}

fn within(function: &str, overload: &str, other: Estimate) -> Estimate {
    // Addresses have 4 or 16 bytes.
    let bytes = Estimate { min: 4, max: 16 };
    let mut cost = bytes.plus(bytes).scaled(TRAVERSAL);
    if function == "containsCIDR" {
        cost = cost.plus(bytes.scaled(TRAVERSAL)).plus(ONE);
    }
    if overload.ends_with("_string") {
        cost = cost.plus(other.scaled(TRAVERSAL));
    }
    cost
}

/// Equality of what Kubernetes' libraries have added.
fn equality(args: &Args<'_>) -> Option<CallEstimate> {
    let [(_, a), (_, b)] = args else { return None };
    if !a.ty.same(&b.ty) {
        return None;
    }
    let name = match &a.ty {
        Type::Object(_) | Type::Opaque(..) => a.ty.name(),
        _ => return None,
    };
    Some(of(match name {
        "net.IP" | "net.CIDR" | "kubernetes.Quantity" | "kubernetes.Semver" => ONE,
        name if name.starts_with("kubernetes.authorization.") => ONE,
        "kubernetes.NamedFormat" => Estimate { min: 1, max: FORMAT_SIZE }.scaled(TRAVERSAL),
        "kubernetes.URL" => {
            let max = b.size.map_or(1, |size| size.max);
            Estimate { min: 1, max }.scaled(TRAVERSAL)
        }
        _ => return None,
    }))
}
