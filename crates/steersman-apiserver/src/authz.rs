//! Who may: everybody who is known may do everything; nobody may see health and version.

use crate::status::{Result, Status};
use crate::user::User;

/// What anybody may read, as Kubernetes' `system:public-info-viewer`.
const PUBLIC: &[&str] = &["healthz", "livez", "readyz", "version"];

/// Refuses a request that its user may not make. `path` is the path's segments.
pub(crate) fn authorize(user: &User, path: &[String]) -> Result<()> {
    let public = path.first().is_some_and(|first| PUBLIC.contains(&first.as_str()));
    if public || !user.is_anonymous() { Ok(()) } else { Err(Status::unauthorized()) }
}

#[cfg(test)]
mod tests {
    use super::authorize;
    use crate::user::User;

    #[test]
    fn nobody_sees_health_and_nothing_else() {
        let path = |first: &str| vec![first.to_owned()];
        assert!(authorize(&User::anonymous(), &path("readyz")).is_ok());
        assert_eq!(authorize(&User::anonymous(), &path("api")).unwrap_err().code, 401);
        assert_eq!(authorize(&User::anonymous(), &[]).unwrap_err().code, 401);
        assert!(authorize(&User::in_process(), &path("api")).is_ok());
    }
}
