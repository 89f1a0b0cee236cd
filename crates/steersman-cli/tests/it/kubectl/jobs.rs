//! Jobs and CronJobs, as kubectl creates, waits for and shows them.

use crate::program::Program;

#[test]
fn a_job_completes_and_is_described_with_its_events() {
    let program = Program::up(&["--nodes", "1"]);
    program.says("create job hello --image=steersman.dev/exit:0-after-1s", &["created"]);
    program.says("wait --for=condition=complete job/hello --timeout=60s", &["condition met"]);
    program.says("get job hello", &["Complete", "1/1"]);
    program.says("get pods -l job-name=hello", &["Completed", "0/1"]);
    program.says(
        "describe job hello",
        &["0 Active (0 Ready) / 1 Succeeded / 0 Failed", "SuccessfulCreate", "Job completed"],
    );
    program.says("delete job hello", &["deleted"]);
    program.says("wait --for=delete pods -l job-name=hello --timeout=60s", &[]);
}

#[test]
fn a_job_that_fails_says_why() {
    let program = Program::up(&["--nodes", "1"]);
    let job = "{apiVersion: batch/v1, kind: Job, metadata: {name: bad}, spec: {backoffLimit: 0, \
               template: {spec: {restartPolicy: Never, containers: \
               [{name: main, image: 'steersman.dev/exit:3'}]}}}}";
    program.says_to(job, "create -f -", &["created"]);
    program.says("wait --for=condition=failed job/bad --timeout=60s", &["condition met"]);
    program.says("get job bad", &["Failed", "0/1"]);
    program.says("get pods -l job-name=bad", &["Error"]);
    let why = "Job has reached the specified backoff limit";
    program.says("describe job bad", &["1 Failed", "BackoffLimitExceeded", why]);
}

#[test]
fn a_job_is_made_from_a_cron_job() {
    let program = Program::up(&["--nodes", "1"]);
    let create = "create cronjob hourly --image=steersman.dev/exit:0 --schedule='0 * * * *'";
    program.says(create, &["created"]);
    program.says("create job manual --from=cronjob/hourly", &["created"]);
    program.says("wait --for=condition=complete job/manual --timeout=60s", &["condition met"]);
    program.says("get cronjob hourly", &["0 * * * *", "False"]);
    program.says("describe cronjob hourly", &["Concurrency Policy", "Active Jobs"]);
}

#[test]
fn pods_show_what_is_wrong_with_them() {
    let program = Program::up(&["--nodes", "1"]);
    program.says("run crash --image=steersman.dev/exit:1", &["created"]);
    program.says("run missing --image=steersman.dev/unpullable", &["created"]);
    let waits = |pod: &str, reason: &str| {
        let path = "{.status.containerStatuses[0].state.waiting.reason}";
        let line = format!("wait pod/{pod} --for=jsonpath='{path}'={reason} --timeout=60s");
        program.says(&line, &["condition met"]);
        program.says(&format!("get pod {pod}"), &[reason]);
    };
    waits("crash", "CrashLoopBackOff");
    waits("missing", "ImagePullBackOff");
    program
        .says("describe pod crash", &["Back-off restarting failed container crash", "Exit Code"]);
    program.says("describe pod missing", &["Failed to pull image", "Error: ImagePullBackOff"]);
}
