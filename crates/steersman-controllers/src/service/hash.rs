//! The order in which Kubernetes tells of ports: by a hash of how Go prints them. People see it, in
//! the columns of `kubectl get endpointslices` among others.

/// FNV-1a with 128 bits.
pub(super) fn fnv_128a(text: &str) -> u128 {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    text.bytes().fold(OFFSET, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME))
}

/// What a pointer points to, with its type, as Go prints it.
pub(super) fn pointer(type_: &str, value: Option<&str>) -> String {
    format!("(*{type_}){}", value.unwrap_or("<nil>"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_go() {
        assert_eq!(fnv_128a(""), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        assert_eq!(fnv_128a("a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
    }
}
