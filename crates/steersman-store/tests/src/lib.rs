//! The tests of stores from outside, in `it/`: a package of their own, so that the store is optimised in
//! tests and they are not.
