//! What is read, what is written, and that both are the same.

mod decode;
mod generate;
mod hostile;
mod round_trip;
