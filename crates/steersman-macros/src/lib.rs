//! The attribute macro behind `#[steersman::test]`.
//!
//! It lives in a crate of its own because the language demands it. The function it wraps runs
//! on `steersman-testkit`, which must be a dev-dependency where it is used.

use proc_macro::TokenStream;
use quote::quote;
use syn::{FnArg, ItemFn, parse_macro_input};

/// Runs an async test with a whole cluster inside, on virtual time.
///
/// ```ignore
/// #[steersman::test]
/// async fn a_config_map_can_be_read_back(cluster: Cluster) -> steersman::Result<()> {
///     cluster.client().create(&config_map()).await?;
///     Ok(())
/// }
/// ```
#[proc_macro_attribute]
pub fn test(arguments: TokenStream, item: TokenStream) -> TokenStream {
    if let Some(argument) = proc_macro2::TokenStream::from(arguments).into_iter().next() {
        let text = "#[steersman::test] takes no arguments; see steersman_testkit::run_with";
        return syn::Error::new_spanned(argument, text).to_compile_error().into();
    }
    let function = parse_macro_input!(item as ItemFn);
    match expand(&function) {
        Ok(tokens) => tokens.into(),
        Err(error) => error.to_compile_error().into(),
    }
}

fn expand(function: &ItemFn) -> syn::Result<proc_macro2::TokenStream> {
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
    let (name, output, pattern, kind) = (&sig.ident, &sig.output, &cluster.pat, &cluster.ty);
    Ok(quote! {
        #[::core::prelude::v1::test]
        #(#attrs)*
        #vis fn #name() #output {
            ::steersman_testkit::run(|#pattern: #kind| async move #block)
        }
    })
}
