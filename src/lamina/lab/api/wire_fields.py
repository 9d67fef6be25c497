"""Field numbers of the Kubernetes messages that kubectl sends as protobuf, from k8s.io/api's published protocol.

One message per entry; a line that is indented goes on with it. A field is `name=number:type`, and the type is one of
`s` string, `y` bytes, `i` integer, `b` boolean, `-` not read, or a message; `[]` before it repeats, `{}` maps strings
to it; `*` after it means that even an empty value says something, `!` that its fields belong to the message around it.
"""

FIELDS = """
AggregationRule: clusterRoleSelectors=1:[]LabelSelector
Binding: metadata=1:ObjectMeta target=2:ObjectReference
Capabilities: add=1:[]s drop=2:[]s
ClientIPConfig: timeoutSeconds=1:i*
ClusterRole: metadata=1:ObjectMeta rules=2:[]PolicyRule aggregationRule=3:AggregationRule*
ClusterRoleBinding: metadata=1:ObjectMeta subjects=2:[]Subject roleRef=3:RoleRef
ConfigMap: metadata=1:ObjectMeta immutable=4:b* data=2:{}s binaryData=3:{}y
ConfigMapEnvSource: localObjectReference=1:LocalObjectReference! optional=2:b*
ConfigMapKeySelector: localObjectReference=1:LocalObjectReference! key=2:s optional=3:b*
ConfigMapProjection: localObjectReference=1:LocalObjectReference! items=2:[]KeyToPath optional=4:b*
ConfigMapVolumeSource: localObjectReference=1:LocalObjectReference! items=2:[]KeyToPath defaultMode=3:i* optional=4:b*
Container: name=1:s image=2:s command=3:[]s args=4:[]s workingDir=5:s ports=6:[]ContainerPort
    envFrom=19:[]EnvFromSource env=7:[]EnvVar resources=8:ResourceRequirements resizePolicy=23:[]ContainerResizePolicy
    restartPolicy=24:s* volumeMounts=9:[]VolumeMount volumeDevices=21:[]VolumeDevice livenessProbe=10:Probe*
    readinessProbe=11:Probe* startupProbe=22:Probe* lifecycle=12:Lifecycle* terminationMessagePath=13:s
    terminationMessagePolicy=20:s imagePullPolicy=14:s securityContext=15:SecurityContext* stdin=16:b stdinOnce=17:b
    tty=18:b
ContainerPort: name=1:s hostPort=2:i containerPort=3:i protocol=4:s hostIP=5:s
ContainerResizePolicy: resourceName=1:s restartPolicy=2:s
DaemonSet: metadata=1:ObjectMeta spec=2:DaemonSetSpec status=3:-
DaemonSetSpec: selector=1:LabelSelector* template=2:PodTemplateSpec updateStrategy=3:DaemonSetUpdateStrategy
    minReadySeconds=4:i revisionHistoryLimit=6:i*
DaemonSetUpdateStrategy: type=1:s rollingUpdate=2:RollingUpdateDaemonSet*
DeleteOptions: gracePeriodSeconds=1:i* preconditions=2:Preconditions* orphanDependents=3:b* propagationPolicy=4:s*
    dryRun=5:[]s
Deployment: metadata=1:ObjectMeta spec=2:DeploymentSpec status=3:-
DeploymentSpec: replicas=1:i* selector=2:LabelSelector* template=3:PodTemplateSpec strategy=4:DeploymentStrategy
    minReadySeconds=5:i revisionHistoryLimit=6:i* paused=7:b progressDeadlineSeconds=9:i*
DeploymentStrategy: type=1:s rollingUpdate=2:RollingUpdateDeployment*
DownwardAPIProjection: items=1:[]DownwardAPIVolumeFile
DownwardAPIVolumeFile: path=1:s fieldRef=2:ObjectFieldSelector* resourceFieldRef=3:ResourceFieldSelector* mode=4:i*
    user=5:i*
DownwardAPIVolumeSource: items=1:[]DownwardAPIVolumeFile defaultMode=2:i*
EmptyDirVolumeSource: medium=1:s sizeLimit=2:Quantity* mode=3:i*
EnvFromSource: prefix=1:s configMapRef=2:ConfigMapEnvSource* secretRef=3:SecretEnvSource*
EnvVar: name=1:s value=2:s valueFrom=3:EnvVarSource*
EnvVarSource: fieldRef=1:ObjectFieldSelector* resourceFieldRef=2:ResourceFieldSelector*
    configMapKeyRef=3:ConfigMapKeySelector* secretKeyRef=4:SecretKeySelector*
Event: metadata=1:ObjectMeta involvedObject=2:ObjectReference reason=3:s message=4:s source=5:EventSource
    firstTimestamp=6:Time lastTimestamp=7:Time count=8:i type=9:s eventTime=10:MicroTime series=11:EventSeries*
    action=12:s related=13:ObjectReference* reportingComponent=14:s reportingInstance=15:s
EventSeries: count=1:i lastObservedTime=2:MicroTime
EventSource: component=1:s host=2:s
Eviction: metadata=1:ObjectMeta deleteOptions=2:DeleteOptions*
ExecAction: command=1:[]s
GRPCAction: port=1:i service=2:s* mode=3:s*
HTTPGetAction: path=1:s port=2:IntOrString host=3:s scheme=4:s httpHeaders=5:[]HTTPHeader protocol=6:s*
HTTPHeader: name=1:s value=2:s
HostAlias: ip=1:s hostnames=2:[]s
HostPathVolumeSource: path=1:s type=2:s*
Job: metadata=1:ObjectMeta spec=2:JobSpec status=3:-
JobSchedulingConfiguration:
JobSpec: parallelism=1:i* completions=2:i* activeDeadlineSeconds=3:i* backoffLimit=7:i* backoffLimitPerIndex=12:i*
    maxFailedIndexes=13:i* selector=4:LabelSelector* manualSelector=5:b* template=6:PodTemplateSpec
    ttlSecondsAfterFinished=8:i* completionMode=9:s* suspend=10:b* podReplacementPolicy=14:s* managedBy=15:s*
    scheduling=17:JobSchedulingConfiguration*
KeyToPath: key=1:s path=2:s mode=3:i* user=4:i*
LabelSelector: matchLabels=1:{}s matchExpressions=2:[]LabelSelectorRequirement
LabelSelectorAttributes: rawSelector=1:s requirements=2:[]LabelSelectorRequirement
LabelSelectorRequirement: key=1:s operator=2:s values=3:[]s
Lease: metadata=1:ObjectMeta spec=2:LeaseSpec
LeaseSpec: holderIdentity=1:s* leaseDurationSeconds=2:i* acquireTime=3:MicroTime* renewTime=4:MicroTime*
    leaseTransitions=5:i* strategy=6:s* preferredHolder=7:s*
Lifecycle: postStart=1:LifecycleHandler* preStop=2:LifecycleHandler*
LifecycleHandler: exec=1:ExecAction* httpGet=2:HTTPGetAction* tcpSocket=3:TCPSocketAction* sleep=4:SleepAction*
LocalObjectReference: name=1:s
Namespace: metadata=1:ObjectMeta spec=2:NamespaceSpec status=3:-
NamespaceSpec: finalizers=1:[]s
Node: metadata=1:ObjectMeta spec=2:NodeSpec status=3:-
NodeSpec: podCIDR=1:s podCIDRs=7:[]s providerID=3:s unschedulable=4:b taints=5:[]Taint
NonResourceAttributes: path=1:s verb=2:s
ObjectFieldSelector: apiVersion=1:s fieldPath=2:s
ObjectMeta: name=1:s generateName=2:s namespace=3:s selfLink=4:- uid=5:s resourceVersion=6:s generation=7:i
    creationTimestamp=8:Time deletionTimestamp=9:Time* deletionGracePeriodSeconds=10:i* labels=11:{}s
    annotations=12:{}s ownerReferences=13:[]OwnerReference finalizers=14:[]s managedFields=17:-
ObjectReference: kind=1:s namespace=2:s name=3:s uid=4:s apiVersion=5:s resourceVersion=6:s fieldPath=7:s
OwnerReference: apiVersion=5:s kind=1:s name=3:s uid=4:s controller=6:b* blockOwnerDeletion=7:b*
PersistentVolumeClaimVolumeSource: claimName=1:s readOnly=2:b
Pod: metadata=1:ObjectMeta spec=2:PodSpec status=3:-
PodDNSConfig: nameservers=1:[]s searches=2:[]s options=3:[]PodDNSConfigOption
PodDNSConfigOption: name=1:s value=2:s*
PodDisruptionBudget: metadata=1:ObjectMeta spec=2:PodDisruptionBudgetSpec status=3:-
PodDisruptionBudgetSpec: minAvailable=1:IntOrString* selector=2:LabelSelector* maxUnavailable=3:IntOrString*
PodOS: name=1:s
PodReadinessGate: conditionType=1:s
PodSchedulingGate: name=1:s
PodSecurityContext: seLinuxOptions=1:SELinuxOptions* runAsUser=2:i* runAsGroup=6:i* runAsNonRoot=3:b*
    supplementalGroups=4:[]i supplementalGroupsPolicy=12:s* fsGroup=5:i* sysctls=7:[]Sysctl fsGroupChangePolicy=9:s*
    seccompProfile=10:SeccompProfile* seLinuxChangePolicy=13:s*
PodSpec: volumes=1:[]Volume initContainers=20:[]Container containers=2:[]Container restartPolicy=3:s
    terminationGracePeriodSeconds=4:i* activeDeadlineSeconds=5:i* dnsPolicy=6:s nodeSelector=7:{}s
    serviceAccountName=8:s serviceAccount=9:s automountServiceAccountToken=21:b* nodeName=10:s hostNetwork=11:b
    hostPID=12:b hostIPC=13:b shareProcessNamespace=27:b* securityContext=14:PodSecurityContext*
    imagePullSecrets=15:[]LocalObjectReference hostname=16:s subdomain=17:s schedulerName=19:s
    tolerations=22:[]Toleration hostAliases=23:[]HostAlias priorityClassName=24:s priority=25:i*
    dnsConfig=26:PodDNSConfig* readinessGates=28:[]PodReadinessGate runtimeClassName=29:s* enableServiceLinks=30:b*
    preemptionPolicy=31:s* overhead=32:{}Quantity topologySpreadConstraints=33:[]TopologySpreadConstraint
    setHostnameAsFQDN=35:b* os=36:PodOS* hostUsers=37:b* schedulingGates=38:[]PodSchedulingGate
    resources=40:ResourceRequirements* hostnameOverride=41:s*
PodTemplateSpec: metadata=1:ObjectMeta spec=2:PodSpec
PolicyRule: verbs=1:[]s apiGroups=2:[]s resources=3:[]s resourceNames=4:[]s nonResourceURLs=5:[]s
Preconditions: uid=1:s* resourceVersion=2:s*
PriorityClass: metadata=1:ObjectMeta value=2:i globalDefault=3:b description=4:s preemptionPolicy=5:s*
Probe: handler=1:ProbeHandler! initialDelaySeconds=2:i timeoutSeconds=3:i periodSeconds=4:i successThreshold=5:i
    failureThreshold=6:i terminationGracePeriodSeconds=7:i*
ProbeHandler: exec=1:ExecAction* httpGet=2:HTTPGetAction* tcpSocket=3:TCPSocketAction* grpc=4:GRPCAction*
ProjectedVolumeSource: sources=1:[]VolumeProjection defaultMode=2:i*
ReplicaSet: metadata=1:ObjectMeta spec=2:ReplicaSetSpec status=3:-
ReplicaSetSpec: replicas=1:i* minReadySeconds=4:i selector=2:LabelSelector* template=3:PodTemplateSpec
ResourceAttributes: namespace=1:s verb=2:s group=3:s version=4:s resource=5:s subresource=6:s name=7:s
    labelSelector=9:LabelSelectorAttributes*
ResourceClaim: name=1:s request=2:s
ResourceFieldSelector: containerName=1:s resource=2:s divisor=3:Quantity
ResourceRequirements: limits=1:{}Quantity requests=2:{}Quantity claims=3:[]ResourceClaim
Role: metadata=1:ObjectMeta rules=2:[]PolicyRule
RoleBinding: metadata=1:ObjectMeta subjects=2:[]Subject roleRef=3:RoleRef
RoleRef: apiGroup=1:s kind=2:s name=3:s
RollingUpdateDaemonSet: maxUnavailable=1:IntOrString* maxSurge=2:IntOrString*
RollingUpdateDeployment: maxUnavailable=1:IntOrString* maxSurge=2:IntOrString*
SELinuxOptions: user=1:s role=2:s type=3:s level=4:s
SeccompProfile: type=1:s localhostProfile=2:s*
Secret: metadata=1:ObjectMeta immutable=5:b* data=2:{}y stringData=4:{}s type=3:s
SecretEnvSource: localObjectReference=1:LocalObjectReference! optional=2:b*
SecretKeySelector: localObjectReference=1:LocalObjectReference! key=2:s optional=3:b*
SecretProjection: localObjectReference=1:LocalObjectReference! items=2:[]KeyToPath optional=4:b*
SecretVolumeSource: secretName=1:s items=2:[]KeyToPath defaultMode=3:i* optional=4:b*
SecurityContext: capabilities=1:Capabilities* privileged=2:b* seLinuxOptions=3:SELinuxOptions* runAsUser=4:i*
    runAsGroup=8:i* runAsNonRoot=5:b* readOnlyRootFilesystem=6:b* allowPrivilegeEscalation=7:b* procMount=9:s*
    seccompProfile=11:SeccompProfile*
SelfSubjectAccessReview: metadata=1:ObjectMeta spec=2:SelfSubjectAccessReviewSpec status=3:-
SelfSubjectAccessReviewSpec: resourceAttributes=1:ResourceAttributes* nonResourceAttributes=2:NonResourceAttributes*
SelfSubjectReview: metadata=1:ObjectMeta status=2:-
SelfSubjectRulesReview: metadata=1:ObjectMeta spec=2:SelfSubjectRulesReviewSpec status=3:-
SelfSubjectRulesReviewSpec: namespace=1:s
Service: metadata=1:ObjectMeta spec=2:ServiceSpec status=3:-
ServiceAccount: metadata=1:ObjectMeta secrets=2:[]ObjectReference imagePullSecrets=3:[]LocalObjectReference
    automountServiceAccountToken=4:b*
ServiceAccountTokenProjection: audience=1:s expirationSeconds=2:i* path=3:s user=4:i*
ServicePort: name=1:s protocol=2:s appProtocol=6:s* port=3:i targetPort=4:IntOrString nodePort=5:i
ServiceSpec: ports=1:[]ServicePort selector=2:{}s clusterIP=3:s clusterIPs=18:[]s type=4:s externalIPs=5:[]s
    sessionAffinity=7:s loadBalancerIP=8:s loadBalancerSourceRanges=9:[]s externalName=10:s externalTrafficPolicy=11:s
    healthCheckNodePort=12:i publishNotReadyAddresses=13:b sessionAffinityConfig=14:SessionAffinityConfig*
    ipFamilies=19:[]s ipFamilyPolicy=17:s* allocateLoadBalancerNodePorts=20:b* loadBalancerClass=21:s*
    internalTrafficPolicy=22:s* trafficDistribution=23:s*
SessionAffinityConfig: clientIP=1:ClientIPConfig*
SleepAction: seconds=1:i
Subject: kind=1:s apiGroup=2:s name=3:s namespace=4:s
Sysctl: name=1:s value=2:s
TCPSocketAction: port=1:IntOrString host=2:s
Taint: key=1:s value=2:s effect=3:s timeAdded=4:Time*
Toleration: key=1:s operator=2:s value=3:s effect=4:s tolerationSeconds=5:i*
TopologySpreadConstraint: maxSkew=1:i topologyKey=2:s whenUnsatisfiable=3:s labelSelector=4:LabelSelector*
    minDomains=5:i* nodeAffinityPolicy=6:s* nodeTaintsPolicy=7:s* matchLabelKeys=8:[]s
Volume: name=1:s volumeSource=2:VolumeSource!
VolumeDevice: name=1:s devicePath=2:s
VolumeMount: name=1:s readOnly=2:b recursiveReadOnly=7:s* mountPath=3:s subPath=4:s mountPropagation=5:s*
    subPathExpr=6:s
VolumeProjection: secret=1:SecretProjection* downwardAPI=2:DownwardAPIProjection* configMap=3:ConfigMapProjection*
    serviceAccountToken=4:ServiceAccountTokenProjection*
VolumeSource: hostPath=1:HostPathVolumeSource* emptyDir=2:EmptyDirVolumeSource* secret=6:SecretVolumeSource*
    persistentVolumeClaim=10:PersistentVolumeClaimVolumeSource* downwardAPI=16:DownwardAPIVolumeSource*
    configMap=19:ConfigMapVolumeSource* projected=26:ProjectedVolumeSource*
"""
