//! What programs may not do: the requests that roles do not allow are noted by [`watch`], which stands
//! between a program and the API server, read by [`refusal`], and told by [`missing`] with the rules
//! to add. Whom a program is, [`deployed`](crate::deployed) says.

mod missing;
mod refusal;
mod watch;

pub use missing::MissingRule;
pub(crate) use missing::{Program, Refusals};
pub(crate) use watch::{Refused, Watched};
