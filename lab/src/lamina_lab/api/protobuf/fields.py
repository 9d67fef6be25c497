"""The fields of Kubernetes' own kinds with their protobuf numbers, from k8s.io/api.

One message per entry; an indented line continues it. A field is `name=number:type`. The type is `s` string, `y` bytes,
`i` integer, `f` fraction, `b` boolean, `-` not read, or a message. `[]` before the type repeats it, `{}` maps strings
to it; `*` after it means that even an empty value counts, `!` that its fields belong to the message around it. A
message without an entry, such as Time, has its own decoder. A container's ResourceClaim is ContainerResourceClaim here,
because resource.k8s.io has a kind of that name.
"""

FIELDS = """
AWSElasticBlockStoreVolumeSource: volumeID=1:s fsType=2:s partition=3:i readOnly=4:b
Affinity: nodeAffinity=1:NodeAffinity* podAffinity=2:PodAffinity* podAntiAffinity=3:PodAntiAffinity*
AggregationRule: clusterRoleSelectors=1:[]LabelSelector
AllocatedDeviceStatus: driver=1:s pool=2:s device=3:s shareID=7:s* conditions=4:[]Condition data=5:RawExtension*
    networkData=6:NetworkDeviceData*
AllocationResult: devices=1:DeviceAllocationResult nodeSelector=3:NodeSelector* allocationTimestamp=5:Time*
AppArmorProfile: type=1:s localhostProfile=2:s*
AttachedVolume: name=1:s devicePath=2:s
AuditAnnotation: key=1:s valueExpression=2:s
AzureDiskVolumeSource: diskName=1:s diskURI=2:s cachingMode=3:s* fsType=4:s* readOnly=5:b* kind=6:s*
AzureFileVolumeSource: secretName=1:s shareName=2:s readOnly=3:b
Binding: metadata=1:ObjectMeta target=2:ObjectReference
BoundObjectReference: kind=1:s apiVersion=2:s name=3:s uid=4:s
CELDeviceSelector: expression=1:s
CSIVolumeSource: driver=1:s readOnly=2:b* fsType=3:s* volumeAttributes=4:{}s
    nodePublishSecretRef=5:LocalObjectReference*
Capabilities: add=1:[]s drop=2:[]s
CapacityRequestPolicy: default=1:Quantity* validValues=3:[]Quantity validRange=4:CapacityRequestPolicyRange*
CapacityRequestPolicyRange: min=1:Quantity* max=2:Quantity* step=3:Quantity*
CapacityRequirements: requests=1:{}Quantity
CephFSVolumeSource: monitors=1:[]s path=2:s user=3:s secretFile=4:s secretRef=5:LocalObjectReference* readOnly=6:b
CinderVolumeSource: volumeID=1:s fsType=2:s readOnly=3:b secretRef=4:LocalObjectReference*
ClientIPConfig: timeoutSeconds=1:i*
ClusterRole: metadata=1:ObjectMeta rules=2:[]PolicyRule aggregationRule=3:AggregationRule*
ClusterRoleBinding: metadata=1:ObjectMeta subjects=2:[]Subject roleRef=3:RoleRef
ClusterTrustBundleProjection: name=1:s* signerName=2:s* labelSelector=3:LabelSelector* optional=5:b* path=4:s
    user=6:i*
Condition: type=1:s status=2:s observedGeneration=3:i lastTransitionTime=4:Time reason=5:s message=6:s
ConfigMap: metadata=1:ObjectMeta immutable=4:b* data=2:{}s binaryData=3:{}y
ConfigMapEnvSource: localObjectReference=1:LocalObjectReference! optional=2:b*
ConfigMapKeySelector: localObjectReference=1:LocalObjectReference! key=2:s optional=3:b*
ConfigMapNodeConfigSource: namespace=1:s name=2:s uid=3:s resourceVersion=4:s kubeletConfigKey=5:s
ConfigMapProjection: localObjectReference=1:LocalObjectReference! items=2:[]KeyToPath optional=4:b*
ConfigMapVolumeSource: localObjectReference=1:LocalObjectReference! items=2:[]KeyToPath defaultMode=3:i* optional=4:b*
    defaultUser=5:i*
Container: name=1:s image=2:s command=3:[]s args=4:[]s workingDir=5:s ports=6:[]ContainerPort
    envFrom=19:[]EnvFromSource env=7:[]EnvVar resources=8:ResourceRequirements resizePolicy=23:[]ContainerResizePolicy
    restartPolicy=24:s* restartPolicyRules=25:[]ContainerRestartRule volumeMounts=9:[]VolumeMount
    volumeDevices=21:[]VolumeDevice livenessProbe=10:Probe* readinessProbe=11:Probe* startupProbe=22:Probe*
    lifecycle=12:Lifecycle* terminationMessagePath=13:s terminationMessagePolicy=20:s imagePullPolicy=14:s
    securityContext=15:SecurityContext* stdin=16:b stdinOnce=17:b tty=18:b
ContainerExtendedResourceRequest: containerName=1:s resourceName=2:s requestName=3:s
ContainerImage: names=1:[]s sizeBytes=2:i
ContainerPort: name=1:s hostPort=2:i containerPort=3:i protocol=4:s hostIP=5:s
ContainerResizePolicy: resourceName=1:s restartPolicy=2:s
ContainerResourceClaim: name=1:s request=2:s
ContainerRestartRule: action=1:s exitCodes=2:ContainerRestartRuleOnExitCodes*
ContainerRestartRuleOnExitCodes: operator=1:s values=2:[]i
ContainerState: waiting=1:ContainerStateWaiting* running=2:ContainerStateRunning*
    terminated=3:ContainerStateTerminated*
ContainerStateRunning: startedAt=1:Time
ContainerStateTerminated: exitCode=1:i signal=2:i reason=3:s message=4:s startedAt=5:Time finishedAt=6:Time
    containerID=7:s
ContainerStateWaiting: reason=1:s message=2:s
ContainerStatus: name=1:s state=2:ContainerState lastState=3:ContainerState ready=4:b restartCount=5:i image=6:s
    imageID=7:s containerID=8:s started=9:b* allocatedResources=10:{}Quantity resources=11:ResourceRequirements*
    volumeMounts=12:[]VolumeMountStatus user=13:ContainerUser* allocatedResourcesStatus=14:[]ResourceStatus
    stopSignal=15:s*
ContainerUser: linux=1:LinuxContainerUser*
ControllerRevision: metadata=1:ObjectMeta data=2:RawExtension* revision=3:i
Counter: value=1:Quantity
CounterSet: name=1:s counters=2:{}Counter
CronJob: metadata=1:ObjectMeta spec=2:CronJobSpec status=3:CronJobStatus
CronJobSpec: schedule=1:s timeZone=8:s* startingDeadlineSeconds=2:i* concurrencyPolicy=3:s suspend=4:b*
    jobTemplate=5:JobTemplateSpec successfulJobsHistoryLimit=6:i* failedJobsHistoryLimit=7:i*
CronJobStatus: active=1:[]ObjectReference lastScheduleTime=4:Time* lastSuccessfulTime=5:Time*
CustomResourceColumnDefinition: name=1:s type=2:s format=3:s description=4:s priority=5:i jsonPath=6:s
CustomResourceConversion: strategy=1:s webhook=2:WebhookConversion*
CustomResourceDefinition: metadata=1:ObjectMeta spec=2:CustomResourceDefinitionSpec
    status=3:CustomResourceDefinitionStatus
CustomResourceDefinitionCondition: type=1:s status=2:s lastTransitionTime=3:Time reason=4:s message=5:s
    observedGeneration=6:i
CustomResourceDefinitionNames: plural=1:s singular=2:s shortNames=3:[]s kind=4:s listKind=5:s categories=6:[]s
CustomResourceDefinitionSpec: group=1:s names=3:CustomResourceDefinitionNames scope=4:s
    versions=7:[]CustomResourceDefinitionVersion conversion=9:CustomResourceConversion* preserveUnknownFields=10:b
CustomResourceDefinitionStatus: conditions=1:[]CustomResourceDefinitionCondition
    acceptedNames=2:CustomResourceDefinitionNames storedVersions=3:[]s observedGeneration=4:i
CustomResourceDefinitionVersion: name=1:s served=2:b storage=3:b deprecated=7:b deprecationWarning=8:s*
    schema=4:CustomResourceValidation* subresources=5:CustomResourceSubresources*
    additionalPrinterColumns=6:[]CustomResourceColumnDefinition selectableFields=9:[]SelectableField
CustomResourceSubresourceScale: specReplicasPath=1:s statusReplicasPath=2:s labelSelectorPath=3:s*
CustomResourceSubresourceStatus:
CustomResourceSubresources: status=1:CustomResourceSubresourceStatus* scale=2:CustomResourceSubresourceScale*
CustomResourceValidation: openAPIV3Schema=1:JSONSchemaProps*
DaemonEndpoint: Port=1:i
DaemonSet: metadata=1:ObjectMeta spec=2:DaemonSetSpec status=3:DaemonSetStatus
DaemonSetCondition: type=1:s status=2:s lastTransitionTime=3:Time reason=4:s message=5:s
DaemonSetSpec: selector=1:LabelSelector* template=2:PodTemplateSpec updateStrategy=3:DaemonSetUpdateStrategy
    minReadySeconds=4:i revisionHistoryLimit=6:i*
DaemonSetStatus: currentNumberScheduled=1:i numberMisscheduled=2:i desiredNumberScheduled=3:i numberReady=4:i
    observedGeneration=5:i updatedNumberScheduled=6:i numberAvailable=7:i numberUnavailable=8:i collisionCount=9:i*
    conditions=10:[]DaemonSetCondition
DaemonSetUpdateStrategy: type=1:s rollingUpdate=2:RollingUpdateDaemonSet*
DeleteOptions: gracePeriodSeconds=1:i* preconditions=2:Preconditions* orphanDependents=3:b* propagationPolicy=4:s*
    dryRun=5:[]s ignoreStoreReadErrorWithClusterBreakingPotential=6:b*
Deployment: metadata=1:ObjectMeta spec=2:DeploymentSpec status=3:DeploymentStatus
DeploymentCondition: type=1:s status=2:s lastUpdateTime=6:Time lastTransitionTime=7:Time reason=4:s message=5:s
DeploymentSpec: replicas=1:i* selector=2:LabelSelector* template=3:PodTemplateSpec strategy=4:DeploymentStrategy
    minReadySeconds=5:i revisionHistoryLimit=6:i* paused=7:b progressDeadlineSeconds=9:i*
DeploymentStatus: observedGeneration=1:i replicas=2:i updatedReplicas=3:i readyReplicas=7:i availableReplicas=4:i
    unavailableReplicas=5:i terminatingReplicas=9:i* conditions=6:[]DeploymentCondition collisionCount=8:i*
DeploymentStrategy: type=1:s rollingUpdate=2:RollingUpdateDeployment*
Device: name=1:s attributes=2:{}DeviceAttribute capacity=3:{}DeviceCapacity
    consumesCounters=4:[]DeviceCounterConsumption nodeName=5:s* nodeSelector=6:NodeSelector* allNodes=7:b*
    taints=8:[]DeviceTaint bindsToNode=9:b* bindingConditions=10:[]s bindingFailureConditions=11:[]s
    allowMultipleAllocations=12:b* nodeAllocatableResourceMappings=13:{}NodeAllocatableResourceMapping
DeviceAllocationConfiguration: source=1:s requests=2:[]s deviceConfiguration=3:DeviceConfiguration!
DeviceAllocationResult: results=1:[]DeviceRequestAllocationResult config=2:[]DeviceAllocationConfiguration
DeviceAttribute: int=2:i* bool=3:b* string=4:s* version=5:s* ints=6:[]i bools=7:[]b strings=8:[]s versions=9:[]s
DeviceCapacity: value=1:Quantity requestPolicy=2:CapacityRequestPolicy*
DeviceClaim: requests=1:[]DeviceRequest constraints=2:[]DeviceConstraint config=3:[]DeviceClaimConfiguration
DeviceClaimConfiguration: requests=1:[]s deviceConfiguration=2:DeviceConfiguration!
DeviceClass: metadata=1:ObjectMeta spec=2:DeviceClassSpec
DeviceClassConfiguration: deviceConfiguration=1:DeviceConfiguration!
DeviceClassSpec: selectors=1:[]DeviceSelector config=2:[]DeviceClassConfiguration extendedResourceName=4:s*
DeviceConfiguration: opaque=1:OpaqueDeviceConfiguration*
DeviceConstraint: requests=1:[]s matchAttribute=2:s* distinctAttribute=3:s*
DeviceCounterConsumption: counterSet=1:s counters=2:{}Counter
DeviceRequest: name=1:s exactly=2:ExactDeviceRequest* firstAvailable=3:[]DeviceSubRequest
DeviceRequestAllocationResult: request=1:s driver=2:s pool=3:s device=4:s adminAccess=5:b*
    tolerations=6:[]DeviceToleration bindingConditions=7:[]s bindingFailureConditions=8:[]s shareID=9:s*
    consumedCapacity=10:{}Quantity
DeviceSelector: cel=1:CELDeviceSelector*
DeviceSubRequest: name=1:s deviceClassName=2:s selectors=3:[]DeviceSelector allocationMode=4:s count=5:i
    tolerations=6:[]DeviceToleration capacity=7:CapacityRequirements*
DeviceTaint: key=1:s value=2:s effect=3:s timeAdded=4:Time*
DeviceTaintRule: metadata=1:ObjectMeta spec=2:DeviceTaintRuleSpec status=3:DeviceTaintRuleStatus
DeviceTaintRuleSpec: deviceSelector=1:DeviceTaintSelector* taint=2:DeviceTaint
DeviceTaintRuleStatus: conditions=1:[]Condition
DeviceTaintSelector: driver=2:s* pool=3:s* device=4:s*
DeviceToleration: key=1:s operator=2:s value=3:s effect=4:s tolerationSeconds=5:i*
DownwardAPIProjection: items=1:[]DownwardAPIVolumeFile
DownwardAPIVolumeFile: path=1:s fieldRef=2:ObjectFieldSelector* resourceFieldRef=3:ResourceFieldSelector* mode=4:i*
    user=5:i*
DownwardAPIVolumeSource: items=1:[]DownwardAPIVolumeFile defaultMode=2:i* defaultUser=3:i*
EmptyDirVolumeSource: medium=1:s sizeLimit=2:Quantity* mode=3:i*
EnvFromSource: prefix=1:s configMapRef=2:ConfigMapEnvSource* secretRef=3:SecretEnvSource*
EnvVar: name=1:s value=2:s valueFrom=3:EnvVarSource*
EnvVarSource: fieldRef=1:ObjectFieldSelector* resourceFieldRef=2:ResourceFieldSelector*
    configMapKeyRef=3:ConfigMapKeySelector* secretKeyRef=4:SecretKeySelector* fileKeyRef=5:FileKeySelector*
EphemeralContainer: ephemeralContainerCommon=1:EphemeralContainerCommon! targetContainerName=2:s
EphemeralContainerCommon: name=1:s image=2:s command=3:[]s args=4:[]s workingDir=5:s ports=6:[]ContainerPort
    envFrom=19:[]EnvFromSource env=7:[]EnvVar resources=8:ResourceRequirements resizePolicy=23:[]ContainerResizePolicy
    restartPolicy=24:s* restartPolicyRules=25:[]ContainerRestartRule volumeMounts=9:[]VolumeMount
    volumeDevices=21:[]VolumeDevice livenessProbe=10:Probe* readinessProbe=11:Probe* startupProbe=22:Probe*
    lifecycle=12:Lifecycle* terminationMessagePath=13:s terminationMessagePolicy=20:s imagePullPolicy=14:s
    securityContext=15:SecurityContext* stdin=16:b stdinOnce=17:b tty=18:b
EphemeralVolumeSource: volumeClaimTemplate=1:PersistentVolumeClaimTemplate*
Event: metadata=1:ObjectMeta involvedObject=2:ObjectReference reason=3:s message=4:s source=5:EventSource
    firstTimestamp=6:Time lastTimestamp=7:Time count=8:i type=9:s eventTime=10:MicroTime series=11:EventSeries*
    action=12:s related=13:ObjectReference* reportingComponent=14:s reportingInstance=15:s
EventSeries: count=1:i lastObservedTime=2:MicroTime
EventSource: component=1:s host=2:s
Eviction: metadata=1:ObjectMeta deleteOptions=2:DeleteOptions*
EvictionResponder: name=1:s priority=2:i*
ExactDeviceRequest: deviceClassName=1:s selectors=2:[]DeviceSelector allocationMode=3:s count=4:i adminAccess=5:b*
    tolerations=6:[]DeviceToleration capacity=7:CapacityRequirements*
ExecAction: command=1:[]s
ExpressionWarning: fieldRef=2:s warning=3:s
ExtraValue: items=1:[]s
FCVolumeSource: targetWWNs=1:[]s lun=2:i* fsType=3:s readOnly=4:b wwids=5:[]s
FieldSelectorAttributes: rawSelector=1:s requirements=2:[]FieldSelectorRequirement
FieldSelectorRequirement: key=1:s operator=2:s values=3:[]s
FileKeySelector: volumeName=1:s path=2:s key=3:s optional=4:b*
FlexVolumeSource: driver=1:s fsType=2:s secretRef=3:LocalObjectReference* readOnly=4:b options=5:{}s
FlockerVolumeSource: datasetName=1:s datasetUUID=2:s
GCEPersistentDiskVolumeSource: pdName=1:s fsType=2:s partition=3:i readOnly=4:b
GRPCAction: port=1:i service=2:s* mode=3:s*
GitRepoVolumeSource: repository=1:s revision=2:s directory=3:s
GlusterfsVolumeSource: endpoints=1:s path=2:s readOnly=3:b
HTTPGetAction: path=1:s port=2:IntOrString host=3:s scheme=4:s httpHeaders=5:[]HTTPHeader protocol=6:s*
HTTPHeader: name=1:s value=2:s
HostAlias: ip=1:s hostnames=2:[]s
HostIP: ip=1:s
HostPathVolumeSource: path=1:s type=2:s*
IPBlock: cidr=1:s except=2:[]s
ISCSIVolumeSource: targetPortal=1:s iqn=2:s lun=3:i iscsiInterface=4:s fsType=5:s readOnly=6:b portals=7:[]s
    chapAuthDiscovery=8:b chapAuthSession=11:b secretRef=10:LocalObjectReference* initiatorName=12:s*
ImageVolumeSource: reference=1:s pullPolicy=2:s
ImageVolumeStatus: imageRef=1:s
Job: metadata=1:ObjectMeta spec=2:JobSpec status=3:JobStatus
JobCondition: type=1:s status=2:s lastProbeTime=3:Time lastTransitionTime=4:Time reason=5:s message=6:s
JobSchedulingConfiguration: schedulingPolicy=1:WorkloadPodGroupSchedulingPolicy*
    schedulingConstraints=2:WorkloadPodGroupSchedulingConstraints* disruptionMode=3:WorkloadPodGroupDisruptionMode*
    resourceClaims=4:[]WorkloadPodGroupResourceClaim
JobSpec: parallelism=1:i* completions=2:i* activeDeadlineSeconds=3:i* podFailurePolicy=11:PodFailurePolicy*
    successPolicy=16:SuccessPolicy* backoffLimit=7:i* backoffLimitPerIndex=12:i* maxFailedIndexes=13:i*
    selector=4:LabelSelector* manualSelector=5:b* template=6:PodTemplateSpec ttlSecondsAfterFinished=8:i*
    completionMode=9:s* suspend=10:b* podReplacementPolicy=14:s* managedBy=15:s*
    scheduling=17:JobSchedulingConfiguration*
JobStatus: conditions=1:[]JobCondition startTime=2:Time* completionTime=3:Time* active=4:i succeeded=5:i failed=6:i
    terminating=11:i* completedIndexes=7:s failedIndexes=10:s* uncountedTerminatedPods=8:UncountedTerminatedPods*
    ready=9:i*
JobTemplateSpec: metadata=1:ObjectMeta spec=2:JobSpec
KeyToPath: key=1:s path=2:s mode=3:i* user=4:i*
LabelSelector: matchLabels=1:{}s matchExpressions=2:[]LabelSelectorRequirement
LabelSelectorAttributes: rawSelector=1:s requirements=2:[]LabelSelectorRequirement
LabelSelectorRequirement: key=1:s operator=2:s values=3:[]s
Lease: metadata=1:ObjectMeta spec=2:LeaseSpec
LeaseSpec: holderIdentity=1:s* leaseDurationSeconds=2:i* acquireTime=3:MicroTime* renewTime=4:MicroTime*
    leaseTransitions=5:i* strategy=6:s* preferredHolder=7:s*
Lifecycle: postStart=1:LifecycleHandler* preStop=2:LifecycleHandler* stopSignal=3:s*
LifecycleHandler: exec=1:ExecAction* httpGet=2:HTTPGetAction* tcpSocket=3:TCPSocketAction* sleep=4:SleepAction*
LimitRange: metadata=1:ObjectMeta spec=2:LimitRangeSpec
LimitRangeItem: type=1:s max=2:{}Quantity min=3:{}Quantity default=4:{}Quantity defaultRequest=5:{}Quantity
    maxLimitRequestRatio=6:{}Quantity
LimitRangeSpec: limits=1:[]LimitRangeItem
LinuxContainerUser: uid=1:i gid=2:i supplementalGroups=3:[]i
LoadBalancerIngress: ip=1:s hostname=2:s ipMode=3:s* ports=4:[]PortStatus
LoadBalancerStatus: ingress=1:[]LoadBalancerIngress
LocalObjectReference: name=1:s
LocalSubjectAccessReview: metadata=1:ObjectMeta spec=2:SubjectAccessReviewSpec status=3:SubjectAccessReviewStatus
MatchCondition: name=1:s expression=2:s
MatchResources: namespaceSelector=1:LabelSelector* objectSelector=2:LabelSelector*
    resourceRules=3:[]NamedRuleWithOperations
    excludeResourceRules=4:[]NamedRuleWithOperations matchPolicy=7:s*
MutatingWebhook: name=1:s clientConfig=2:WebhookClientConfig rules=3:[]RuleWithOperations failurePolicy=4:s*
    matchPolicy=9:s* namespaceSelector=5:LabelSelector* objectSelector=11:LabelSelector* sideEffects=6:s*
    timeoutSeconds=7:i* admissionReviewVersions=8:[]s reinvocationPolicy=10:s* matchConditions=12:[]MatchCondition
MutatingWebhookConfiguration: metadata=1:ObjectMeta webhooks=2:[]MutatingWebhook
NFSVolumeSource: server=1:s path=2:s readOnly=3:b
NamedRuleWithOperations: resourceNames=1:[]s ruleWithOperations=2:RuleWithOperations!
Namespace: metadata=1:ObjectMeta spec=2:NamespaceSpec status=3:NamespaceStatus
NamespaceCondition: type=1:s status=2:s lastTransitionTime=4:Time reason=5:s message=6:s
NamespaceSpec: finalizers=1:[]s
NamespaceStatus: phase=1:s conditions=2:[]NamespaceCondition
NetworkDeviceData: interfaceName=1:s ips=2:[]s hardwareAddress=3:s
NetworkPolicy: metadata=1:ObjectMeta spec=2:NetworkPolicySpec
NetworkPolicyEgressRule: ports=1:[]NetworkPolicyPort to=2:[]NetworkPolicyPeer
NetworkPolicyIngressRule: ports=1:[]NetworkPolicyPort from=2:[]NetworkPolicyPeer
NetworkPolicyPeer: podSelector=1:LabelSelector* namespaceSelector=2:LabelSelector* ipBlock=3:IPBlock*
NetworkPolicyPort: protocol=1:s* port=2:IntOrString* endPort=3:i*
NetworkPolicySpec: podSelector=1:LabelSelector ingress=2:[]NetworkPolicyIngressRule egress=3:[]NetworkPolicyEgressRule
    policyTypes=4:[]s
Node: metadata=1:ObjectMeta spec=2:NodeSpec status=3:NodeStatus
NodeAddress: type=1:s address=2:s
NodeAffinity: requiredDuringSchedulingIgnoredDuringExecution=1:NodeSelector*
    preferredDuringSchedulingIgnoredDuringExecution=2:[]PreferredSchedulingTerm
NodeAllocatableMappedResources: name=1:s quantity=2:Quantity*
NodeAllocatableOverheadResources: name=1:s perPod=2:Quantity* perContainer=3:Quantity*
NodeAllocatableResourceClaimStatus: resourceClaimName=1:s containers=2:[]s mapping=4:[]NodeAllocatableMappedResources
    overhead=5:[]NodeAllocatableOverheadResources
NodeAllocatableResourceMapping: capacityKey=1:s* allocationMultiplier=2:Quantity*
NodeCondition: type=1:s status=2:s lastHeartbeatTime=3:Time lastTransitionTime=4:Time reason=5:s message=6:s
NodeConfigSource: configMap=2:ConfigMapNodeConfigSource*
NodeConfigStatus: assigned=1:NodeConfigSource* active=2:NodeConfigSource* lastKnownGood=3:NodeConfigSource* error=4:s
NodeDaemonEndpoints: kubeletEndpoint=1:DaemonEndpoint
NodeFeatures: supplementalGroupsPolicy=1:b*
NodePodPreemptionPolicy: disableResizePreemption=1:[]s
NodeRuntimeHandler: name=1:s features=2:NodeRuntimeHandlerFeatures*
NodeRuntimeHandlerFeatures: recursiveReadOnlyMounts=1:b* userNamespaces=2:b*
NodeSelector: nodeSelectorTerms=1:[]NodeSelectorTerm
NodeSelectorRequirement: key=1:s operator=2:s values=3:[]s
NodeSelectorTerm: matchExpressions=1:[]NodeSelectorRequirement matchFields=2:[]NodeSelectorRequirement
NodeSpec: podCIDR=1:s podCIDRs=7:[]s providerID=3:s unschedulable=4:b taints=5:[]Taint
    configSource=6:NodeConfigSource* externalID=2:s podPreemptionPolicy=8:NodePodPreemptionPolicy*
NodeStatus: capacity=1:{}Quantity allocatable=2:{}Quantity phase=3:s conditions=4:[]NodeCondition
    addresses=5:[]NodeAddress daemonEndpoints=6:NodeDaemonEndpoints nodeInfo=7:NodeSystemInfo
    images=8:[]ContainerImage volumesInUse=9:[]s volumesAttached=10:[]AttachedVolume config=11:NodeConfigStatus*
    runtimeHandlers=12:[]NodeRuntimeHandler features=13:NodeFeatures* declaredFeatures=14:[]s
NodeSwapStatus: capacity=1:i*
NodeSystemInfo: machineID=1:s systemUUID=2:s bootID=3:s kernelVersion=4:s osImage=5:s containerRuntimeVersion=6:s
    kubeletVersion=7:s kubeProxyVersion=8:s operatingSystem=9:s architecture=10:s swap=11:NodeSwapStatus*
NonResourceAttributes: path=1:s verb=2:s
NonResourceRule: verbs=1:[]s nonResourceURLs=2:[]s
ObjectFieldSelector: apiVersion=1:s fieldPath=2:s
ObjectMeta: name=1:s generateName=2:s namespace=3:s selfLink=4:s uid=5:s resourceVersion=6:s generation=7:i
    creationTimestamp=8:Time deletionTimestamp=9:Time* deletionGracePeriodSeconds=10:i* labels=11:{}s
    annotations=12:{}s ownerReferences=13:[]OwnerReference finalizers=14:[]s managedFields=17:-
ObjectReference: kind=1:s namespace=2:s name=3:s uid=4:s apiVersion=5:s resourceVersion=6:s fieldPath=7:s
OpaqueDeviceConfiguration: driver=1:s parameters=2:RawExtension
OwnerReference: apiVersion=5:s kind=1:s name=3:s uid=4:s controller=6:b* blockOwnerDeletion=7:b*
ParamKind: apiVersion=1:s kind=2:s
ParamRef: name=1:s namespace=2:s selector=3:LabelSelector* parameterNotFoundAction=4:s*
PersistentVolumeClaim: metadata=1:ObjectMeta spec=2:PersistentVolumeClaimSpec status=3:-
PersistentVolumeClaimSpec: accessModes=1:[]s selector=4:LabelSelector* resources=2:VolumeResourceRequirements
    volumeName=3:s storageClassName=5:s* volumeMode=6:s* dataSource=7:TypedLocalObjectReference*
    dataSourceRef=8:TypedObjectReference* volumeAttributesClassName=9:s*
PersistentVolumeClaimTemplate: metadata=1:ObjectMeta spec=2:PersistentVolumeClaimSpec
PersistentVolumeClaimVolumeSource: claimName=1:s readOnly=2:b
PhotonPersistentDiskVolumeSource: pdID=1:s fsType=2:s
Pod: metadata=1:ObjectMeta spec=2:PodSpec status=3:PodStatus
PodAffinity: requiredDuringSchedulingIgnoredDuringExecution=1:[]PodAffinityTerm
    preferredDuringSchedulingIgnoredDuringExecution=2:[]WeightedPodAffinityTerm
PodAffinityTerm: labelSelector=1:LabelSelector* namespaces=2:[]s topologyKey=3:s namespaceSelector=4:LabelSelector*
    matchLabelKeys=5:[]s mismatchLabelKeys=6:[]s
PodAntiAffinity: requiredDuringSchedulingIgnoredDuringExecution=1:[]PodAffinityTerm
    preferredDuringSchedulingIgnoredDuringExecution=2:[]WeightedPodAffinityTerm
PodCertificateProjection: signerName=1:s keyType=2:s maxExpirationSeconds=3:i* credentialBundlePath=4:s keyPath=5:s
    certificateChainPath=6:s userAnnotations=7:{}s user=8:i*
PodCondition: type=1:s observedGeneration=7:i status=2:s lastProbeTime=3:Time lastTransitionTime=4:Time reason=5:s
    message=6:s
PodDNSConfig: nameservers=1:[]s searches=2:[]s options=3:[]PodDNSConfigOption
PodDNSConfigOption: name=1:s value=2:s*
PodDisruptionBudget: metadata=1:ObjectMeta spec=2:PodDisruptionBudgetSpec status=3:PodDisruptionBudgetStatus
PodDisruptionBudgetSpec: minAvailable=1:IntOrString* selector=2:LabelSelector* maxUnavailable=3:IntOrString*
    unhealthyPodEvictionPolicy=4:s*
PodDisruptionBudgetStatus: observedGeneration=1:i disruptedPods=2:{}Time disruptionsAllowed=3:i currentHealthy=4:i
    desiredHealthy=5:i expectedPods=6:i conditions=7:[]Condition
PodExtendedResourceClaimStatus: requestMappings=1:[]ContainerExtendedResourceRequest resourceClaimName=2:s
PodFailurePolicy: rules=1:[]PodFailurePolicyRule
PodFailurePolicyOnExitCodesRequirement: containerName=1:s* operator=2:s values=3:[]i
PodFailurePolicyOnPodConditionsPattern: type=1:s status=2:s
PodFailurePolicyRule: action=1:s onExitCodes=2:PodFailurePolicyOnExitCodesRequirement*
    onPodConditions=3:[]PodFailurePolicyOnPodConditionsPattern
PodIP: ip=1:s
PodOS: name=1:s
PodReadinessGate: conditionType=1:s
PodResourceClaim: name=1:s resourceClaimName=3:s* resourceClaimTemplateName=4:s*
PodResourceClaimStatus: name=1:s resourceClaimName=2:s*
PodSchedulingGate: name=1:s
PodSchedulingGroup: podGroupName=1:s*
PodSecurityContext: seLinuxOptions=1:SELinuxOptions* windowsOptions=8:WindowsSecurityContextOptions* runAsUser=2:i*
    runAsGroup=6:i* runAsNonRoot=3:b* supplementalGroups=4:[]i supplementalGroupsPolicy=12:s* fsGroup=5:i*
    sysctls=7:[]Sysctl fsGroupChangePolicy=9:s* seccompProfile=10:SeccompProfile* appArmorProfile=11:AppArmorProfile*
    seLinuxChangePolicy=13:s*
PodSpec: volumes=1:[]Volume initContainers=20:[]Container containers=2:[]Container
    ephemeralContainers=34:[]EphemeralContainer restartPolicy=3:s terminationGracePeriodSeconds=4:i*
    activeDeadlineSeconds=5:i* dnsPolicy=6:s nodeSelector=7:{}s serviceAccountName=8:s serviceAccount=9:s
    automountServiceAccountToken=21:b* nodeName=10:s hostNetwork=11:b hostPID=12:b hostIPC=13:b
    shareProcessNamespace=27:b* securityContext=14:PodSecurityContext* imagePullSecrets=15:[]LocalObjectReference
    hostname=16:s subdomain=17:s affinity=18:Affinity* schedulerName=19:s tolerations=22:[]Toleration
    hostAliases=23:[]HostAlias priorityClassName=24:s priority=25:i* dnsConfig=26:PodDNSConfig*
    readinessGates=28:[]PodReadinessGate runtimeClassName=29:s* enableServiceLinks=30:b* preemptionPolicy=31:s*
    overhead=32:{}Quantity topologySpreadConstraints=33:[]TopologySpreadConstraint setHostnameAsFQDN=35:b*
    os=36:PodOS* hostUsers=37:b* schedulingGates=38:[]PodSchedulingGate resourceClaims=39:[]PodResourceClaim
    resources=40:ResourceRequirements* hostnameOverride=41:s* schedulingGroup=43:PodSchedulingGroup*
    evictionResponders=44:[]EvictionResponder
PodStatus: observedGeneration=17:i phase=1:s conditions=2:[]PodCondition message=3:s reason=4:s nominatedNodeName=11:s
    hostIP=5:s hostIPs=16:[]HostIP podIP=6:s podIPs=12:[]PodIP startTime=7:Time*
    initContainerStatuses=10:[]ContainerStatus containerStatuses=8:[]ContainerStatus qosClass=9:s
    ephemeralContainerStatuses=13:[]ContainerStatus resize=14:s resourceClaimStatuses=15:[]PodResourceClaimStatus
    extendedResourceClaimStatus=18:PodExtendedResourceClaimStatus* allocatedResources=19:{}Quantity
    resources=20:ResourceRequirements* nodeAllocatableResourceClaimStatuses=21:[]NodeAllocatableResourceClaimStatus
    volumeHealth=22:[]PodVolumeHealth
PodTemplateSpec: metadata=1:ObjectMeta spec=2:PodSpec
PodVolumeHealth: name=1:s healthConditions=2:[]VolumeHealthCondition lastTransitionTime=3:Time
PolicyRule: verbs=1:[]s apiGroups=2:[]s resources=3:[]s resourceNames=4:[]s nonResourceURLs=5:[]s
PortStatus: port=1:i protocol=2:s error=3:s*
PortworxVolumeSource: volumeID=1:s fsType=2:s readOnly=3:b
Preconditions: uid=1:s* resourceVersion=2:s*
PreferredSchedulingTerm: weight=1:i preference=2:NodeSelectorTerm
PriorityClass: metadata=1:ObjectMeta value=2:i globalDefault=3:b description=4:s preemptionPolicy=5:s*
Probe: handler=1:ProbeHandler! initialDelaySeconds=2:i timeoutSeconds=3:i periodSeconds=4:i successThreshold=5:i
    failureThreshold=6:i terminationGracePeriodSeconds=7:i*
ProbeHandler: exec=1:ExecAction* httpGet=2:HTTPGetAction* tcpSocket=3:TCPSocketAction* grpc=4:GRPCAction*
ProjectedVolumeSource: sources=1:[]VolumeProjection defaultMode=2:i* defaultUser=3:i*
QuobyteVolumeSource: registry=1:s volume=2:s readOnly=3:b user=4:s group=5:s tenant=6:s
RBDVolumeSource: monitors=1:[]s image=2:s fsType=3:s pool=4:s user=5:s keyring=6:s secretRef=7:LocalObjectReference*
    readOnly=8:b
ReplicaSet: metadata=1:ObjectMeta spec=2:ReplicaSetSpec status=3:ReplicaSetStatus
ReplicaSetCondition: type=1:s status=2:s lastTransitionTime=3:Time reason=4:s message=5:s
ReplicaSetSpec: replicas=1:i* minReadySeconds=4:i selector=2:LabelSelector* template=3:PodTemplateSpec
ReplicaSetStatus: replicas=1:i fullyLabeledReplicas=2:i readyReplicas=4:i availableReplicas=5:i
    terminatingReplicas=7:i* observedGeneration=3:i conditions=6:[]ReplicaSetCondition
ResourceAttributes: namespace=1:s verb=2:s group=3:s version=4:s resource=5:s subresource=6:s name=7:s
    fieldSelector=8:FieldSelectorAttributes* labelSelector=9:LabelSelectorAttributes*
ResourceClaim: metadata=1:ObjectMeta spec=2:ResourceClaimSpec status=3:ResourceClaimStatus
ResourceClaimConsumerReference: apiGroup=1:s resource=3:s name=4:s uid=5:s
ResourceClaimSpec: devices=1:DeviceClaim
ResourceClaimStatus: allocation=1:AllocationResult* reservedFor=2:[]ResourceClaimConsumerReference
    devices=4:[]AllocatedDeviceStatus
ResourceClaimTemplate: metadata=1:ObjectMeta spec=2:ResourceClaimTemplateSpec
ResourceClaimTemplateSpec: metadata=1:ObjectMeta spec=2:ResourceClaimSpec
ResourceFieldSelector: containerName=1:s resource=2:s divisor=3:Quantity
ResourceHealth: resourceID=1:s health=2:s message=6:s*
ResourcePool: name=1:s generation=2:i resourceSliceCount=3:i
ResourceQuota: metadata=1:ObjectMeta spec=2:ResourceQuotaSpec status=3:ResourceQuotaStatus
ResourceQuotaSpec: hard=1:{}Quantity scopes=2:[]s scopeSelector=3:ScopeSelector*
ResourceQuotaStatus: hard=1:{}Quantity used=2:{}Quantity
ResourceRequirements: limits=1:{}Quantity requests=2:{}Quantity claims=3:[]ContainerResourceClaim
ResourceRule: verbs=1:[]s apiGroups=2:[]s resources=3:[]s resourceNames=4:[]s
ResourceSlice: metadata=1:ObjectMeta spec=2:ResourceSliceSpec
ResourceSliceSpec: driver=1:s pool=2:ResourcePool nodeName=3:s* nodeSelector=4:NodeSelector* allNodes=5:b*
    devices=6:[]Device perDeviceNodeSelection=7:b sharedCounters=8:[]CounterSet
ResourceStatus: name=1:s resources=2:[]ResourceHealth
Role: metadata=1:ObjectMeta rules=2:[]PolicyRule
RoleBinding: metadata=1:ObjectMeta subjects=2:[]Subject roleRef=3:RoleRef
RoleRef: apiGroup=1:s kind=2:s name=3:s
RollingUpdateDaemonSet: maxUnavailable=1:IntOrString* maxSurge=2:IntOrString*
RollingUpdateDeployment: maxUnavailable=1:IntOrString* maxSurge=2:IntOrString*
RollingUpdateStatefulSetStrategy: partition=1:i* maxUnavailable=2:IntOrString*
Rule: apiGroups=1:[]s apiVersions=2:[]s resources=3:[]s scope=4:s*
RuleWithOperations: operations=1:[]s rule=2:Rule!
SELinuxOptions: user=1:s role=2:s type=3:s level=4:s
ScaleIOVolumeSource: gateway=1:s system=2:s secretRef=3:LocalObjectReference* sslEnabled=4:b protectionDomain=5:s
    storagePool=6:s storageMode=7:s volumeName=8:s fsType=9:s readOnly=10:b
ScopeSelector: matchExpressions=1:[]ScopedResourceSelectorRequirement
ScopedResourceSelectorRequirement: scopeName=1:s operator=2:s values=3:[]s
SeccompProfile: type=1:s localhostProfile=2:s*
Secret: metadata=1:ObjectMeta immutable=5:b* data=2:{}y stringData=4:{}s type=3:s
SecretEnvSource: localObjectReference=1:LocalObjectReference! optional=2:b*
SecretKeySelector: localObjectReference=1:LocalObjectReference! key=2:s optional=3:b*
SecretProjection: localObjectReference=1:LocalObjectReference! items=2:[]KeyToPath optional=4:b*
SecretVolumeSource: secretName=1:s items=2:[]KeyToPath defaultMode=3:i* optional=4:b* defaultUser=5:i*
SecurityContext: capabilities=1:Capabilities* privileged=2:b* seLinuxOptions=3:SELinuxOptions*
    windowsOptions=10:WindowsSecurityContextOptions* runAsUser=4:i* runAsGroup=8:i* runAsNonRoot=5:b*
    readOnlyRootFilesystem=6:b* allowPrivilegeEscalation=7:b* procMount=9:s* seccompProfile=11:SeccompProfile*
    appArmorProfile=12:AppArmorProfile*
SelectableField: jsonPath=1:s
SelfSubjectAccessReview: metadata=1:ObjectMeta spec=2:SelfSubjectAccessReviewSpec status=3:SubjectAccessReviewStatus
SelfSubjectAccessReviewSpec: resourceAttributes=1:ResourceAttributes* nonResourceAttributes=2:NonResourceAttributes*
SelfSubjectReview: metadata=1:ObjectMeta status=2:SelfSubjectReviewStatus
SelfSubjectReviewStatus: userInfo=1:UserInfo
SelfSubjectRulesReview: metadata=1:ObjectMeta spec=2:SelfSubjectRulesReviewSpec status=3:SubjectRulesReviewStatus
SelfSubjectRulesReviewSpec: namespace=1:s
Service: metadata=1:ObjectMeta spec=2:ServiceSpec status=3:ServiceStatus
ServiceAccount: metadata=1:ObjectMeta secrets=2:[]ObjectReference imagePullSecrets=3:[]LocalObjectReference
    automountServiceAccountToken=4:b*
ServiceAccountTokenProjection: audience=1:s expirationSeconds=2:i* path=3:s user=4:i*
ServicePort: name=1:s protocol=2:s appProtocol=6:s* port=3:i targetPort=4:IntOrString nodePort=5:i
ServiceReference: namespace=1:s name=2:s path=3:s* port=4:i*
ServiceSpec: ports=1:[]ServicePort selector=2:{}s clusterIP=3:s clusterIPs=18:[]s type=4:s externalIPs=5:[]s
    sessionAffinity=7:s loadBalancerIP=8:s loadBalancerSourceRanges=9:[]s externalName=10:s externalTrafficPolicy=11:s
    healthCheckNodePort=12:i publishNotReadyAddresses=13:b sessionAffinityConfig=14:SessionAffinityConfig*
    ipFamilies=19:[]s ipFamilyPolicy=17:s* allocateLoadBalancerNodePorts=20:b* loadBalancerClass=21:s*
    internalTrafficPolicy=22:s* trafficDistribution=23:s*
ServiceStatus: loadBalancer=1:LoadBalancerStatus conditions=2:[]Condition
SessionAffinityConfig: clientIP=1:ClientIPConfig*
SleepAction: seconds=1:i
StatefulSet: metadata=1:ObjectMeta spec=2:StatefulSetSpec status=3:StatefulSetStatus
StatefulSetCondition: type=1:s status=2:s lastTransitionTime=3:Time reason=4:s message=5:s
StatefulSetOrdinals: start=1:i
StatefulSetPersistentVolumeClaimRetentionPolicy: whenDeleted=1:s whenScaled=2:s
StatefulSetSpec: replicas=1:i* selector=2:LabelSelector* template=3:PodTemplateSpec
    volumeClaimTemplates=4:[]PersistentVolumeClaim serviceName=5:s podManagementPolicy=6:s
    updateStrategy=7:StatefulSetUpdateStrategy revisionHistoryLimit=8:i* minReadySeconds=9:i
    persistentVolumeClaimRetentionPolicy=10:StatefulSetPersistentVolumeClaimRetentionPolicy*
    ordinals=11:StatefulSetOrdinals*
StatefulSetStatus: observedGeneration=1:i replicas=2:i readyReplicas=3:i currentReplicas=4:i updatedReplicas=5:i
    currentRevision=6:s updateRevision=7:s collisionCount=9:i* conditions=10:[]StatefulSetCondition
    availableReplicas=11:i
StatefulSetUpdateStrategy: type=1:s rollingUpdate=2:RollingUpdateStatefulSetStrategy*
StorageOSVolumeSource: volumeName=1:s volumeNamespace=2:s fsType=3:s readOnly=4:b secretRef=5:LocalObjectReference*
Subject: kind=1:s apiGroup=2:s name=3:s namespace=4:s
SubjectAccessReview: metadata=1:ObjectMeta spec=2:SubjectAccessReviewSpec status=3:SubjectAccessReviewStatus
SubjectAccessReviewSpec: resourceAttributes=1:ResourceAttributes* nonResourceAttributes=2:NonResourceAttributes*
    user=3:s groups=4:[]s extra=5:- uid=6:s
SubjectAccessReviewStatus: allowed=1:b denied=4:b reason=2:s evaluationError=3:s
SubjectRulesReviewStatus: resourceRules=1:[]ResourceRule nonResourceRules=2:[]NonResourceRule incomplete=3:b
    evaluationError=4:s
SuccessPolicy: rules=1:[]SuccessPolicyRule
SuccessPolicyRule: succeededIndexes=1:s* succeededCount=2:i*
Sysctl: name=1:s value=2:s
TCPSocketAction: port=1:IntOrString host=2:s
Taint: key=1:s value=2:s effect=3:s timeAdded=4:Time*
TokenRequest: metadata=1:ObjectMeta spec=2:TokenRequestSpec status=3:TokenRequestStatus
TokenRequestSpec: audiences=1:[]s boundObjectRef=3:BoundObjectReference* expirationSeconds=4:i*
TokenRequestStatus: token=1:s expirationTimestamp=2:Time
TokenReview: metadata=1:ObjectMeta spec=2:TokenReviewSpec status=3:TokenReviewStatus
TokenReviewSpec: token=1:s audiences=2:[]s
TokenReviewStatus: authenticated=1:b user=2:UserInfo audiences=4:[]s error=3:s
Toleration: key=1:s operator=2:s value=3:s effect=4:s tolerationSeconds=5:i*
TopologySpreadConstraint: maxSkew=1:i topologyKey=2:s whenUnsatisfiable=3:s labelSelector=4:LabelSelector*
    minDomains=5:i* nodeAffinityPolicy=6:s* nodeTaintsPolicy=7:s* matchLabelKeys=8:[]s
TypeChecking: expressionWarnings=1:[]ExpressionWarning
TypedLocalObjectReference: apiGroup=1:s* kind=2:s name=3:s
TypedObjectReference: apiGroup=1:s* kind=2:s name=3:s namespace=4:s*
UncountedTerminatedPods: succeeded=1:[]s failed=2:[]s
UserInfo: username=1:s uid=2:s groups=3:[]s extra=4:{}ExtraValue
ValidatingAdmissionPolicy: metadata=1:ObjectMeta spec=2:ValidatingAdmissionPolicySpec
    status=3:ValidatingAdmissionPolicyStatus
ValidatingAdmissionPolicyBinding: metadata=1:ObjectMeta spec=2:ValidatingAdmissionPolicyBindingSpec
ValidatingAdmissionPolicyBindingSpec: policyName=1:s paramRef=2:ParamRef* matchResources=3:MatchResources*
    validationActions=4:[]s
ValidatingAdmissionPolicySpec: paramKind=1:ParamKind* matchConstraints=2:MatchResources* validations=3:[]Validation
    failurePolicy=4:s* auditAnnotations=5:[]AuditAnnotation matchConditions=6:[]MatchCondition variables=7:[]Variable
ValidatingAdmissionPolicyStatus: observedGeneration=1:i typeChecking=2:TypeChecking* conditions=3:[]Condition
ValidatingWebhook: name=1:s clientConfig=2:WebhookClientConfig rules=3:[]RuleWithOperations failurePolicy=4:s*
    matchPolicy=9:s* namespaceSelector=5:LabelSelector* objectSelector=10:LabelSelector* sideEffects=6:s*
    timeoutSeconds=7:i* admissionReviewVersions=8:[]s matchConditions=11:[]MatchCondition
ValidatingWebhookConfiguration: metadata=1:ObjectMeta webhooks=2:[]ValidatingWebhook
Validation: expression=1:s message=2:s reason=3:s* messageExpression=4:s
Variable: name=1:s expression=2:s
Volume: name=1:s volumeSource=2:VolumeSource!
VolumeDevice: name=1:s devicePath=2:s
VolumeHealthCondition: status=1:s reason=2:s message=3:s
VolumeMount: name=1:s readOnly=2:b recursiveReadOnly=7:s* mountPath=3:s subPath=4:s mountPropagation=5:s*
    subPathExpr=6:s bindMountOptions=8:[]s
VolumeMountStatus: name=1:s mountPath=2:s readOnly=3:b recursiveReadOnly=4:s* volumeStatus=5:VolumeStatus*
VolumeProjection: secret=1:SecretProjection* downwardAPI=2:DownwardAPIProjection* configMap=3:ConfigMapProjection*
    serviceAccountToken=4:ServiceAccountTokenProjection* clusterTrustBundle=5:ClusterTrustBundleProjection*
    podCertificate=6:PodCertificateProjection*
VolumeResourceRequirements: limits=1:{}Quantity requests=2:{}Quantity
VolumeSource: hostPath=1:HostPathVolumeSource* emptyDir=2:EmptyDirVolumeSource*
    gcePersistentDisk=3:GCEPersistentDiskVolumeSource* awsElasticBlockStore=4:AWSElasticBlockStoreVolumeSource*
    gitRepo=5:GitRepoVolumeSource* secret=6:SecretVolumeSource* nfs=7:NFSVolumeSource* iscsi=8:ISCSIVolumeSource*
    glusterfs=9:GlusterfsVolumeSource* persistentVolumeClaim=10:PersistentVolumeClaimVolumeSource*
    rbd=11:RBDVolumeSource* flexVolume=12:FlexVolumeSource* cinder=13:CinderVolumeSource*
    cephfs=14:CephFSVolumeSource* flocker=15:FlockerVolumeSource* downwardAPI=16:DownwardAPIVolumeSource*
    fc=17:FCVolumeSource* azureFile=18:AzureFileVolumeSource* configMap=19:ConfigMapVolumeSource*
    vsphereVolume=20:VsphereVirtualDiskVolumeSource* quobyte=21:QuobyteVolumeSource*
    azureDisk=22:AzureDiskVolumeSource* photonPersistentDisk=23:PhotonPersistentDiskVolumeSource*
    projected=26:ProjectedVolumeSource* portworxVolume=24:PortworxVolumeSource* scaleIO=25:ScaleIOVolumeSource*
    storageos=27:StorageOSVolumeSource* csi=28:CSIVolumeSource* ephemeral=29:EphemeralVolumeSource*
    image=30:ImageVolumeSource*
VolumeStatus: image=1:ImageVolumeStatus*
VsphereVirtualDiskVolumeSource: volumePath=1:s fsType=2:s storagePolicyName=3:s storagePolicyID=4:s
WebhookClientConfig: url=3:s* service=1:ServiceReference* caBundle=2:y
WebhookConversion: clientConfig=2:WebhookClientConfig* conversionReviewVersions=3:[]s
WeightedPodAffinityTerm: weight=1:i podAffinityTerm=2:PodAffinityTerm
WindowsSecurityContextOptions: gmsaCredentialSpecName=1:s* gmsaCredentialSpec=2:s* runAsUserName=3:s* hostProcess=4:b*
"""
