//! A test without its type: what runs tests is compiled here, once, and not in a user's crate for
//! each of them.

use std::future::Future;

use futures::future::LocalBoxFuture;

use crate::cluster::Cluster;

/// A test whose type is forgotten.
pub(crate) type Test<'a> = Box<dyn FnOnce(Cluster) -> LocalBoxFuture<'a, ()> + 'a>;

/// Lets a test be run without its type, and returns what it returned.
pub(crate) fn untyped<R, Fut: Future<Output = R>>(
    test: impl FnOnce(Cluster) -> Fut,
    run: impl FnOnce(Test<'_>),
) -> R {
    let mut result = None;
    let returned = &mut result;
    run(Box::new(move |cluster| {
        let test = test(cluster);
        Box::pin(async move { *returned = Some(test.await) })
    }));
    result.expect("a test that has run has returned")
}
