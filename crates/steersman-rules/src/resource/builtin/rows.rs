//! The table of built-in resources: one line each.
//!
//! A line is the name in paths, the kind, the scope, the short names, and what else is true of
//! it, as [`Trait`]s. Everything that can be derived (singular, list kind, storage folder) is.

/// One line of the table.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) group: &'static str,
    pub(super) version: &'static str,
    pub(super) plural: &'static str,
    pub(super) kind: &'static str,
    pub(super) namespaced: bool,
    pub(super) short_names: &'static [&'static str],
    pub(super) traits: &'static [Trait],
}

impl Row {
    pub(super) fn has(&self, wanted: Trait) -> bool {
        self.traits.contains(&wanted)
    }
}

/// Something that is true of a resource and not of most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trait {
    /// A review: it is answered, never stored.
    CreateOnly,
    /// Only get and list.
    ReadOnly,
    /// No deletecollection.
    OneByOne,
    /// In the category `all`.
    All,
    /// In the category `api-extensions`.
    ApiExtensions,
    /// `metadata.generation` counts changes of the desired state.
    Generation,
    /// PUT creates what does not exist.
    CreateOnUpdate,
    /// PUT must carry a resourceVersion.
    VersionedUpdate,
    /// Who writes the status cannot write metadata with it.
    StatusAlone,
    /// The rest are subresources.
    Status,
    Scale,
    Approval,
    Finalize,
    Token,
    Binding,
    EphemeralContainers,
    Eviction,
    Resize,
    Attach,
    Exec,
    Log,
    PortForward,
    Proxy,
}

enum Scope {
    Cluster,
    Namespaced,
}

macro_rules! rows {
    ($( $group:literal $version:literal {
        $( $plural:ident $kind:ident $scope:ident [$($short:ident)*] [$($t:ident)*] )*
    } )*) => {
        &[ $( $( Row {
            group: $group,
            version: $version,
            plural: stringify!($plural),
            kind: stringify!($kind),
            namespaced: matches!(Scope::$scope, Scope::Namespaced),
            short_names: &[$( stringify!($short) ),*],
            traits: &[$( Trait::$t ),*],
        }, )* )* ]
    };
}

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = rows! {
    "" "v1" {
        bindings                Binding                 Namespaced []       [CreateOnly]
        componentstatuses       ComponentStatus         Cluster    [cs]     [ReadOnly]
        configmaps              ConfigMap               Namespaced [cm]     []
        endpoints               Endpoints               Namespaced [ep]     [CreateOnUpdate]
        events                  Event                   Namespaced [ev]     [CreateOnUpdate]
        limitranges             LimitRange              Namespaced [limits] [CreateOnUpdate]
        namespaces              Namespace               Cluster    [ns]     [OneByOne Finalize Status]
        nodes                   Node                    Cluster    [no]     [Proxy Status]
        persistentvolumeclaims  PersistentVolumeClaim   Namespaced [pvc]    [Status]
        persistentvolumes       PersistentVolume        Cluster    [pv]     [Status]
        pods                    Pod                     Namespaced [po]     [All Generation Attach Binding EphemeralContainers Eviction Exec Log PortForward Proxy Resize Status]
        podtemplates            PodTemplate             Namespaced []       [Generation]
        replicationcontrollers  ReplicationController   Namespaced [rc]     [All Generation Scale Status]
        resourcequotas          ResourceQuota           Namespaced [quota]  [Status]
        secrets                 Secret                  Namespaced []       []
        serviceaccounts         ServiceAccount          Namespaced [sa]     [Token]
        services                Service                 Namespaced [svc]    [All CreateOnUpdate Proxy Status]
    }
    "apiregistration.k8s.io" "v1" {
        apiservices             APIService              Cluster    []       [ApiExtensions VersionedUpdate StatusAlone Status]
    }
    "apps" "v1" {
        controllerrevisions     ControllerRevision      Namespaced []       []
        daemonsets              DaemonSet               Namespaced [ds]     [All Generation Status]
        deployments             Deployment              Namespaced [deploy] [All Generation Scale Status]
        replicasets             ReplicaSet              Namespaced [rs]     [All Generation Scale Status]
        statefulsets            StatefulSet             Namespaced [sts]    [All Generation Scale Status]
    }
    "events.k8s.io" "v1" {
        events                  Event                   Namespaced [ev]     [CreateOnUpdate]
    }
    "authentication.k8s.io" "v1" {
        selfsubjectreviews      SelfSubjectReview       Cluster    []       [CreateOnly]
        tokenreviews            TokenReview             Cluster    []       [CreateOnly]
    }
    "authorization.k8s.io" "v1" {
        localsubjectaccessreviews LocalSubjectAccessReview Namespaced []    [CreateOnly]
        selfsubjectaccessreviews SelfSubjectAccessReview Cluster   []       [CreateOnly]
        selfsubjectrulesreviews SelfSubjectRulesReview  Cluster    []       [CreateOnly]
        subjectaccessreviews    SubjectAccessReview     Cluster    []       [CreateOnly]
    }
    "autoscaling" "v2" {
        horizontalpodautoscalers HorizontalPodAutoscaler Namespaced [hpa]   [All Status]
    }
    "autoscaling" "v1" {
        horizontalpodautoscalers HorizontalPodAutoscaler Namespaced [hpa]   [All Status]
    }
    "batch" "v1" {
        cronjobs                CronJob                 Namespaced [cj]     [All Generation Status]
        jobs                    Job                     Namespaced []       [All Generation Status]
    }
    "certificates.k8s.io" "v1" {
        certificatesigningrequests CertificateSigningRequest Cluster [csr]  [Approval Status]
    }
    "networking.k8s.io" "v1" {
        ingressclasses          IngressClass            Cluster    []       [Generation]
        ingresses               Ingress                 Namespaced [ing]    [Generation Status]
        ipaddresses             IPAddress               Cluster    [ip]     []
        networkpolicies         NetworkPolicy           Namespaced [netpol] [Generation]
        servicecidrs            ServiceCIDR             Cluster    []       [StatusAlone Status]
    }
    "policy" "v1" {
        poddisruptionbudgets    PodDisruptionBudget     Namespaced [pdb]    [Generation VersionedUpdate Status]
    }
    "rbac.authorization.k8s.io" "v1" {
        clusterrolebindings     ClusterRoleBinding      Cluster    []       [CreateOnUpdate]
        clusterroles            ClusterRole             Cluster    []       [CreateOnUpdate]
        rolebindings            RoleBinding             Namespaced []       [CreateOnUpdate]
        roles                   Role                    Namespaced []       [CreateOnUpdate]
    }
    "storage.k8s.io" "v1" {
        csidrivers              CSIDriver               Cluster    []       [VersionedUpdate]
        csinodes                CSINode                 Cluster    []       [VersionedUpdate]
        csistoragecapacities    CSIStorageCapacity      Namespaced []       [VersionedUpdate]
        storageclasses          StorageClass            Cluster    [sc]     []
        volumeattachments       VolumeAttachment        Cluster    []       [VersionedUpdate StatusAlone Status]
        volumeattributesclasses VolumeAttributesClass   Cluster    [vac]    []
    }
    "admissionregistration.k8s.io" "v1" {
        mutatingadmissionpolicies MutatingAdmissionPolicy Cluster  []       [ApiExtensions Generation VersionedUpdate]
        mutatingadmissionpolicybindings MutatingAdmissionPolicyBinding Cluster [] [ApiExtensions Generation VersionedUpdate]
        mutatingwebhookconfigurations MutatingWebhookConfiguration Cluster [] [ApiExtensions Generation VersionedUpdate]
        validatingadmissionpolicies ValidatingAdmissionPolicy Cluster []    [ApiExtensions Generation VersionedUpdate StatusAlone Status]
        validatingadmissionpolicybindings ValidatingAdmissionPolicyBinding Cluster [] [ApiExtensions Generation VersionedUpdate]
        validatingwebhookconfigurations ValidatingWebhookConfiguration Cluster [] [ApiExtensions Generation VersionedUpdate]
    }
    "apiextensions.k8s.io" "v1" {
        customresourcedefinitions CustomResourceDefinition Cluster [crd crds] [ApiExtensions Generation VersionedUpdate Status]
    }
    "scheduling.k8s.io" "v1" {
        priorityclasses         PriorityClass           Cluster    [pc]     [Generation]
    }
    "coordination.k8s.io" "v1" {
        leases                  Lease                   Namespaced []       [CreateOnUpdate VersionedUpdate]
    }
    "node.k8s.io" "v1" {
        runtimeclasses          RuntimeClass            Cluster    []       [CreateOnUpdate VersionedUpdate]
    }
    "discovery.k8s.io" "v1" {
        endpointslices          EndpointSlice           Namespaced []       [Generation]
    }
    "resource.k8s.io" "v1" {
        deviceclasses           DeviceClass             Cluster    []       [Generation]
        resourceclaims          ResourceClaim           Namespaced []       [StatusAlone Status]
        resourceclaimtemplates  ResourceClaimTemplate   Namespaced []       []
        resourceslices          ResourceSlice           Cluster    []       [Generation]
    }
    "flowcontrol.apiserver.k8s.io" "v1" {
        flowschemas             FlowSchema              Cluster    []       [Generation StatusAlone Status]
        prioritylevelconfigurations PriorityLevelConfiguration Cluster []   [Generation StatusAlone Status]
    }
};
