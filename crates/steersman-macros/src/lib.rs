//! The attribute macro behind `#[steersman::test]`.
//!
//! It lives in a crate of its own because the language demands it. The function it wraps runs
//! on `steersman-testkit`, which must be a dev-dependency where it is used.

use proc_macro::TokenStream;
use quote::quote;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{Expr, ExprLit, FnArg, ItemFn, Lit, Meta, Token, parse_macro_input};

/// The settings that a test may name; `anywhere` alone needs no value.
const SETTINGS: [&str; 8] =
    ["nodes", "termination", "controllers", "which", "runtime_config", "seed", "limit", "anywhere"];

/// Runs an async test with a whole cluster inside, on virtual time.
///
/// ```ignore
/// #[steersman::test]
/// async fn a_config_map_can_be_read_back(cluster: Cluster) -> steersman::Result<()> {
///     cluster.client().create(&config_map()).await?;
///     Ok(())
/// }
/// ```
///
/// `#[steersman::test(nodes = 5, seed = 7)]` names fields of `steersman_testkit::Settings`; the limit
/// can be a text, such as `limit = "8d"`, `"1d12h"` or `"90m"`. A test
/// marked `anywhere` has `::anywhere` behind its name, so that `cargo test ::anywhere` runs all that
/// can run on any cluster.
#[proc_macro_attribute]
pub fn test(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let function = parse_macro_input!(item as ItemFn);
    let arguments = Punctuated::<Meta, Token![,]>::parse_terminated.parse(arguments);
    match arguments.and_then(|arguments| expand(&arguments, &function)) {
        Ok(tokens) => tokens.into(),
        Err(error) => error.to_compile_error().into(),
    }
}

fn expand(
    arguments: &Punctuated<Meta, Token![,]>,
    function: &ItemFn,
) -> syn::Result<proc_macro2::TokenStream> {
    let ItemFn { attrs, vis, sig, block, .. } = function;
    if sig.asyncness.is_none() {
        let text = "a test with a cluster inside is an `async fn`";
        return Err(syn::Error::new_spanned(sig.fn_token, text));
    }
    let mut inputs = sig.inputs.iter();
    let (Some(FnArg::Typed(cluster)), None) = (inputs.next(), inputs.next()) else {
        let text = "a test with a cluster inside takes one argument, `cluster: Cluster`";
        return Err(syn::Error::new_spanned(&sig.ident, text));
    };
    let settings = arguments.iter().map(setting).collect::<syn::Result<Vec<_>>>()?;
    let name = &sig.ident;
    let output = &sig.output;
    let pattern = &cluster.pat;
    let kind = &cluster.ty;
    let body = quote! {
        #vis fn #name() #output {
            #[allow(unused_mut, reason = "there may be nothing to set")]
            let mut settings = ::steersman_testkit::Settings::default();
            #(settings.#settings;)*
            ::steersman_testkit::run_with(settings, |#pattern: #kind| async move #block)
        }
    };
    if !arguments.iter().any(|argument| argument.path().is_ident("anywhere")) {
        return Ok(quote! { #[::core::prelude::v1::test] #(#attrs)* #body });
    }
    // As a test of the name `…::anywhere`, it can be chosen with its like.
    Ok(quote! {
        #[cfg(test)]
        #body
        #[cfg(test)]
        mod #name {
            #[::core::prelude::v1::test]
            #(#attrs)*
            fn anywhere() -> impl ::std::process::Termination {
                super::#name()
            }
        }
    })
}

/// One argument as an assignment to a field of the settings.
fn setting(argument: &Meta) -> syn::Result<proc_macro2::TokenStream> {
    let name = argument.path().get_ident().filter(|name| SETTINGS.contains(&&*name.to_string()));
    let Some(name) = name else {
        let text = format!("a test can be told: {}", SETTINGS.join(", "));
        return Err(syn::Error::new_spanned(argument, text));
    };
    match argument {
        Meta::NameValue(pair) => {
            let value = &pair.value;
            let value = if name == "limit" {
                time(value)?
            } else {
                quote! { #value }
            };
            Ok(quote! { #name = #value })
        }
        Meta::Path(_) if name == "anywhere" => Ok(quote! { #name = true }),
        _ => Err(syn::Error::new_spanned(argument, format!("write `{name} = …`"))),
    }
}

/// A time: as a text, or as an expression that is one.
fn time(value: &Expr) -> syn::Result<proc_macro2::TokenStream> {
    let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = value else {
        return Ok(quote! { #value });
    };
    let Some(seconds) = seconds(&text.value()) else {
        let wrong = "a time is a number of days, hours, minutes or seconds, such as \"8d\", \
                     \"1d12h\" or \"90m\"";
        return Err(syn::Error::new_spanned(text, wrong));
    };
    Ok(quote! { ::core::time::Duration::from_secs(#seconds) })
}

/// How many seconds a text such as `1d12h` stands for.
fn seconds(text: &str) -> Option<u64> {
    let mut total: u64 = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let unit = rest.find(|character: char| !character.is_ascii_digit())?;
        let count: u64 = rest[..unit].parse().ok()?;
        let seconds = match rest[unit..].chars().next()? {
            'd' => 86_400,
            'h' => 3600,
            'm' => 60,
            's' => 1,
            _ => return None,
        };
        total = total.checked_add(count.checked_mul(seconds)?)?;
        rest = &rest[unit + 1..];
    }
    (!text.is_empty()).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn a_time_is_a_sum_of_days_hours_minutes_and_seconds() {
        for (text, expected) in [
            ("8d", Some(8 * 86_400)),
            ("1d12h", Some(36 * 3600)),
            ("90m", Some(5400)),
            ("1m30s", Some(90)),
            ("", None),
            ("8", None),
            ("d", None),
            ("8 d", None),
            ("8w", None),
            ("99999999999999999999d", None),
        ] {
            assert_eq!(seconds(text), expected, "{text:?}");
        }
    }
}
