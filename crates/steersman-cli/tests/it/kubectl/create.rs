//! `kubectl create`: every generator, and what it makes.

use crate::program::Program;

#[test]
fn create_makes_workloads() {
    let program = Program::up(&["--nodes", "0"]);
    program.says("create namespace shop", &["namespace/shop created"]);
    program.refuses("create namespace shop", &["AlreadyExists", "\"shop\" already exists"]);
    program.says(
        "create deployment web --image=nginx --image=busybox --replicas=2 -n shop",
        &["deployment.apps/web created"],
    );
    program.says("create deployment port --image=nginx --port=80 -n shop", &[]);
    program.says("create job once --image=busybox -n shop -- date", &["job.batch/once created"]);
    program.says(
        "create cronjob hourly --image=busybox --schedule='0 * * * *' -n shop -- date",
        &["cronjob.batch/hourly created"],
    );
    program.says("create job manual --from=cronjob/hourly -n shop", &["job.batch/manual created"]);
    program.says(
        "get deployment/web job/once cronjob/hourly job/manual -n shop \
         -o jsonpath='{range .items[*]}{.kind} {.spec.replicas}{.spec.schedule}{.spec.completions} {end}'",
        &["Deployment 2", "Job 1", "CronJob 0 * * * *"],
    );
    let owner = "get job manual -n shop -o jsonpath='{.metadata.ownerReferences[0].kind}'";
    program.says(owner, &["CronJob"]);
    program.refuses("create deployment Web --image=nginx", &["Invalid value: \"Web\"", "RFC 1123"]);
    program.refuses("create cronjob bad --image=a --schedule=never", &["spec.schedule"]);
    program
        .refuses("create deployment web --image=a -n absent", &["namespaces \"absent\" not found"]);
}

#[test]
fn create_makes_configuration() {
    let program = Program::up(&["--nodes", "0"]);
    let file = program.file("colours.txt", "red\nblue\n");
    program.file("many/a", "1");
    let many = program.file("many/b", "2").replace("/b", "");
    let env = program.file("settings.env", "LEVEL=debug\nCOLOUR=red\n");
    program.says(
        &format!(
            "create configmap all --from-literal=a=b --from-file={file} --from-file=key={file}"
        ),
        &["configmap/all created"],
    );
    program.says(
        "get configmap all -o jsonpath='{.data}'",
        &["\"a\":\"b\"", "colours.txt", "\"key\""],
    );
    program.says(&format!("create configmap dir --from-file={many}"), &[]);
    program.says(&format!("create configmap env --from-env-file={env}"), &[]);
    let data = "get cm dir env -o jsonpath='{.items[*].data}'";
    program.says(data, &["{\"a\":\"1\",\"b\":\"2\"}", "\"LEVEL\":\"debug\""]);

    program.says("create secret generic pass --from-literal=user=me", &["secret/pass created"]);
    let login = "create secret docker-registry pull --docker-server=r.example.com \
                 --docker-username=me --docker-password=secret";
    program.says(login, &["secret/pull created"]);
    let (certificate, key) = certificate(&program);
    program.says(&format!("create secret tls web --cert={certificate} --key={key}"), &["created"]);
    program.says("get secrets --field-selector=type=kubernetes.io/tls -o name", &["secret/web\n"]);
    let types = "get secret pass pull web -o jsonpath='{.items[*].type}'";
    program.says(types, &["Opaque kubernetes.io/dockerconfigjson kubernetes.io/tls"]);
    program.says("get secret pass -o go-template='{{.data.user | base64decode}}'", &["me"]);

    program.says("create quota most --hard=pods=3,cpu=2", &["resourcequota/most created"]);
    program.says(
        "create priorityclass high --value=1000 --description=first --preemption-policy=Never",
        &["priorityclass.scheduling.k8s.io/high created"],
    );
    program.says("get priorityclass high", &["1000", "false"]);
    program.says(
        "create pdb web --selector=app=web --min-available=50%",
        &["poddisruptionbudget.policy/web created"],
    );
    program.says("get quota,pdb", &["most", "50%"]);
}

/// A self-signed certificate and its key, as files.
fn certificate(program: &Program) -> (String, String) {
    let kubeconfig = std::fs::read_to_string(program.directory.join("kubeconfig")).unwrap();
    let field = |name: &str| {
        let line = kubeconfig.lines().find(|line| line.contains(name)).unwrap();
        program.file(&format!("{name}.64"), line.split(": ").nth(1).unwrap().trim())
    };
    let decode = |encoded: &str| {
        let output = std::process::Command::new("base64").args(["-d", encoded]).output().unwrap();
        let path = encoded.replace(".64", ".pem");
        std::fs::write(&path, output.stdout).unwrap();
        path
    };
    (decode(&field("client-certificate-data")), decode(&field("client-key-data")))
}

#[test]
fn create_makes_services_with_addresses_and_ports() {
    let program = Program::up(&["--nodes", "0"]);
    program.says("create service clusterip web --tcp=80:8080", &["service/web created"]);
    program.says("create service clusterip bare --clusterip=None", &["created"]);
    program.says("create service nodeport node --tcp=80 --node-port=30123", &["created"]);
    program.says("create service loadbalancer balanced --tcp=443", &["created"]);
    program.says("create service externalname away --external-name=example.com", &["created"]);
    let table = program.says("get services", &["CLUSTER-IP", "example.com", "80:30123/TCP"]);
    let row = |name: &str| table.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    assert!(row("web").contains("ClusterIP") && row("web").contains(" 10."), "{table}");
    assert!(row("bare").contains("None"), "{table}");
    assert!(row("balanced").contains("<pending>") && row("balanced").contains("443:3"), "{table}");
    assert!(row("away").contains("ExternalName"), "{table}");
    program.refuses(
        "create service nodeport taken --tcp=80 --node-port=30123",
        &["provided port is already allocated"],
    );
    program.refuses(
        "create service nodeport low --tcp=80 --node-port=80",
        &["valid ports is 30000-32767"],
    );
}

#[test]
fn create_makes_ingresses() {
    let program = Program::up(&["--nodes", "0"]);
    program.says(
        "create ingress web --class=nginx --rule='shop.example.com/cart*=cart:80,tls=cert' \
         --default-backend=web:80",
        &["ingress.networking.k8s.io/web created"],
    );
    program.says("get ingress", &["nginx", "shop.example.com", "80, 443"]);
    program.says("describe ingress web", &["cart:80", "/cart", "cert terminates shop.example.com"]);
}

#[test]
fn create_makes_accounts_and_roles() {
    let program = Program::up(&["--nodes", "0"]);
    program.says("create serviceaccount robot", &["serviceaccount/robot created"]);
    program
        .says("create role reader --verb=get,list --resource=pods,deployments.apps", &["created"]);
    program.says("create clusterrole lister --verb=list --resource=nodes", &["created"]);
    program.says(
        "create clusterrole health --verb=get --non-resource-url=/healthz,/livez/*",
        &["clusterrole.rbac.authorization.k8s.io/health created"],
    );
    program.says(
        "create clusterrole all --aggregation-rule=rbac.example.com/add=true",
        &["clusterrole.rbac.authorization.k8s.io/all created"],
    );
    program.says(
        "create rolebinding readers --role=reader --serviceaccount=default:robot",
        &["created"],
    );
    program.says(
        "create clusterrolebinding listers --clusterrole=lister --user=ada --group=crew",
        &["created"],
    );
    program.says("describe role reader", &["deployments.apps", "[get list]"]);
    program.says("get rolebinding -o wide", &["Role/reader", "default/robot"]);
    program.says("get clusterrolebinding listers -o wide", &["ClusterRole/lister", "ada", "crew"]);
}

#[test]
fn tokens_are_made_and_tell_who_bears_them() {
    let program = Program::up(&["--nodes", "0"]);
    program.says("create serviceaccount robot", &[]);
    let token = program.says("create token robot --duration=1h --audience=shop", &["."]);
    assert_eq!(token.trim().split('.').count(), 3, "{token}");
    let own = program.says("create token robot", &[]);
    program.says(
        &format!("auth whoami {}", program.bearing(&own)),
        &["system:serviceaccount:default:robot", "system:serviceaccounts:default"],
    );
    program.refuses("create token absent", &["serviceaccounts \"absent\" not found"]);
}
