//! `cargo xtask help`.

use crate::process::Outcome;

const HELP: &str = "\
The chores of this repository.

  cargo xtask test [ARGS]            install what the tests need, then run every test;
                                     ARGS go to cargo test, which is then all that runs
  cargo xtask conformance [SUITE]... run the clients of other languages against the program:
                                     python, javascript, go, or all
  cargo xtask attack [NAME]... [--short] [--etcd] [--program FILE] [--list]
                                     attack the program as a hostile client would, on the
                                     loopback interface, and say what it withstood
  cargo xtask fuzz [TARGET]... [--seconds N]
                                     look for bytes with which a reader of foreign bytes does
                                     not hold to what it must; needs a C++ compiler
  cargo xtask soak [sweeps|node|fuzz|mixed]... [SEEDS] [--minutes N]
                                     the sweeps over seeds that the tests run briefly, over 2000
                                     seeds or so many; 100 real Pods while their node's agent and
                                     containerd are killed; the fuzzer; 30 minutes of everything at
                                     once, kills included
  cargo xtask upstream --controller-manager COMMAND --scheduler COMMAND [--kubectl COMMAND]
                                     let Kubernetes' own programs, which you have, work on a
                                     cluster of ours
  cargo xtask bench [NAME] [--json]  run the benchmark NAME, or all of them; informer also
                                     takes --pods N, --rounds N and --system NAME, store
                                     --quick, --rounds N, --system NAME, --part PART
                                     (puts, watch, large, pods) and --directory PATH, rollout
                                     --rounds N and --upstream DIR, where Kubernetes' programs are,
                                     housekeeping --cascade N, --service-pods N, --lost-pods N
                                     and --idle-pods N, scale --sizes NODES:PODS,...; study,
                                     which is not among all, writes docs/scale.md and takes
                                     --sizes N,..., --shards N,... and --docs DIR
  cargo xtask compare --server URL --token T [--only PATTERN] [--report FILE] [--show N]
                                     send the same requests to a real kube-apiserver and to
                                     ours and print where they differ; --ours URL
                                     --ours-token T takes a program that runs already
  cargo xtask compare-scheduler --kube DIR [--seeds N] [--first N] [--pods N] [--objects]
                                     let kube-scheduler of a directory and ours decide about
                                     the same Pods in random clusters and print where they
                                     differ
  cargo xtask compare-controllers --kube DIR [--only PATTERN] [--managed-fields] [--show N]
                                     give kube-controller-manager of a directory and our
                                     controllers the same objects and print where what they
                                     make of them differs; without --kube ours with itself
  cargo xtask tidy                   run only the checks of the repository's own rules
  cargo xtask circles                print which circles the modules of each crate form
  cargo xtask package [ARGS]         make and build every package that would be published;
                                     ARGS go to cargo package
  cargo xtask schemas                write the API server's table of built-in types again
  cargo xtask help                   show this
";

/// Prints what there is.
#[allow(clippy::unnecessary_wraps, reason = "commands share one signature")]
pub(crate) fn run() -> Outcome {
    print!("{HELP}");
    Ok(())
}
