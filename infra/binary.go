//go:build cdk

package main

import (
	"fmt"
	"strconv"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsec2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsecrassets"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsecs"
	elb "github.com/aws/aws-cdk-go/awscdk/v2/awselasticloadbalancingv2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsroute53targets"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssecretsmanager"
	"github.com/aws/jsii-runtime-go"

	"blindpost/shared/dialect/aelos"
	declared "blindpost/shared/settings"
)

// Ports of the binary front. Clients and functions speak TLS to the load balancer. From
// there to the task it is plain HTTP, in a network of their own.
const (
	clientPort       = 443
	callbackPort     = 8443
	taskClientPort   = 8080
	taskCallbackPort = 8081

	binaryNetwork = "10.91.0.0/24"
)

// binaryFront is `blindpost serve --lambda` on Fargate: a WebSocket front that
// carries what API Gateway refuses, with the same functions behind it.
//
// It is one task, never two: a connection lives in it, and the functions reach it by
// the one address of the load balancer. A deployment ends the old task before the
// new one starts; clients come back by themselves, as after the two hours of API Gateway.
type binaryFront struct {
	clients elb.ApplicationTargetGroup
}

// aelosPaths are the paths that only this front can serve.
func (s *settings) aelosPaths() []string {
	if s.aelosPath == "" || s.aelosPath == aelos.Path {
		return []string{aelos.Path}
	}
	return []string{aelos.Path, s.aelosPath}
}

// binaryCallbackURL is where the functions post to.
func (s *settings) binaryCallbackURL() string {
	return "https://" + s.binaryDomain + ":" + strconv.Itoa(callbackPort)
}

// allFronts are the callback addresses of all binary fronts; nil without one.
func (s *settings) allFronts() []string {
	if !s.binaryFront {
		return s.fronts
	}
	return append([]string{s.binaryCallbackURL()}, s.fronts...)
}

// newFrontSecret makes the secret that the functions send to binary fronts, so that only
// they can post to connections. It is made before the functions, which are told its ARN.
func newFrontSecret(stack awscdk.Stack) awssecretsmanager.Secret {
	return newSecret(stack, "FrontSecret", "Blindpost: by this binary fronts know the functions")
}

func (r *relay) newBinaryFront(image string) {
	r.binary = &binaryFront{}
	vpc := awsec2.NewVpc(r.Stack, str("BinaryNetwork"), &awsec2.VpcProps{
		IpAddresses: awsec2.IpAddresses_Cidr(str(binaryNetwork)),
		MaxAzs:      jsii.Number(2), // as many as a load balancer wants
		// The task reaches Lambda by its own public address: a NAT gateway would cost
		// more than the front itself.
		NatGateways: jsii.Number(0),
		SubnetConfiguration: &[]*awsec2.SubnetConfiguration{{
			Name: str("Public"), SubnetType: awsec2.SubnetType_PUBLIC, CidrMask: jsii.Number(26),
		}},
		RestrictDefaultSecurityGroup: jsii.Bool(false), // it would need a function; nothing is in that group
	})
	group := func(id, description string) awsec2.SecurityGroup {
		return awsec2.NewSecurityGroup(r.Stack, &id, &awsec2.SecurityGroupProps{Vpc: vpc, Description: &description, AllowAllOutbound: jsii.Bool(false)})
	}
	balancerGroup := group("BinaryBalancerGroup", "Blindpost: clients, and functions that call back")
	taskGroup := group("BinaryTaskGroup", "Blindpost: the binary front")
	tcp := func(port float64) awsec2.Port { return awsec2.Port_Tcp(jsii.Number(port)) }
	balancerGroup.AddIngressRule(awsec2.Peer_AnyIpv4(), tcp(clientPort), str("clients"), nil)
	balancerGroup.AddIngressRule(awsec2.Peer_AnyIpv4(), tcp(callbackPort), str("functions, which show a secret"), nil)
	for _, port := range []float64{taskClientPort, taskCallbackPort} {
		// A rule that names a group is a resource of its own, and a group without a rule
		// inside it lets everything out: hence the first rule, which names addresses.
		balancerGroup.AddEgressRule(awsec2.Peer_Ipv4(str(binaryNetwork)), tcp(port), str("the task"), nil)
		balancerGroup.AddEgressRule(taskGroup, tcp(port), str("the task"), nil)
		taskGroup.AddIngressRule(balancerGroup, tcp(port), str("the load balancer"), nil)
	}
	taskGroup.AddEgressRule(awsec2.Peer_AnyIpv4(), tcp(443), str("Lambda, Secrets Manager, logs, the image"), nil)

	service := r.newBinaryService(vpc, taskGroup, image)
	r.newBalancer(vpc, balancerGroup, service)
	r.output("BinaryUrl", "WebSocket address of the binary front", "wss://"+r.settings.binaryDomain)
}

func (r *relay) newBinaryService(vpc awsec2.IVpc, group awsec2.ISecurityGroup, image string) awsecs.FargateService {
	asset := awsecrassets.NewDockerImageAsset(r.Stack, str("BinaryImage"), &awsecrassets.DockerImageAssetProps{
		Directory: &image, Platform: awsecrassets.Platform_LINUX_ARM64(),
	})
	log := r.newLogGroup(r.Stack, "BinaryLog")
	// Without the permissions that the CDK would add by itself.
	closed := &awsiam.WithoutPolicyUpdatesOptions{}
	task := awsecs.NewFargateTaskDefinition(r.Stack, str("BinaryTask"), &awsecs.FargateTaskDefinitionProps{
		Cpu:            jsii.Number(r.settings.binaryCPU),
		MemoryLimitMiB: jsii.Number(r.settings.binaryMemory),
		RuntimePlatform: &awsecs.RuntimePlatform{
			CpuArchitecture: awsecs.CpuArchitecture_ARM64(), OperatingSystemFamily: awsecs.OperatingSystemFamily_LINUX(),
		},
		TaskRole:      r.newBinaryRole("BinaryRole", "the binary front", r.binaryPermissions()).WithoutPolicyUpdates(closed),
		ExecutionRole: r.newBinaryRole("BinaryStartRole", "start of the binary front", startPermissions(asset, *log.LogGroupArn())).WithoutPolicyUpdates(closed),
	})
	env := environment(r.binaryTold())
	task.AddContainer(str("blindpost"), &awsecs.ContainerDefinitionOptions{
		Image:                  awsecs.ContainerImage_FromDockerImageAsset(asset),
		Environment:            &env,
		Command:                jsii.Strings("serve"),
		ReadonlyRootFilesystem: jsii.Bool(true),
		// A shutdown spreads its closes over some seconds.
		StopTimeout:  awscdk.Duration_Seconds(jsii.Number(60)),
		Ulimits:      &[]*awsecs.Ulimit{{Name: awsecs.UlimitName_NOFILE, SoftLimit: jsii.Number(65_536), HardLimit: jsii.Number(65_536)}},
		Logging:      awsecs.LogDriver_AwsLogs(&awsecs.AwsLogDriverProps{LogGroup: log, StreamPrefix: str("front")}),
		PortMappings: &[]*awsecs.PortMapping{{ContainerPort: jsii.Number(taskClientPort)}, {ContainerPort: jsii.Number(taskCallbackPort)}},
	})
	cluster := awsecs.NewCluster(r.Stack, str("BinaryCluster"), &awsecs.ClusterProps{
		Vpc: vpc, ContainerInsightsV2: awsecs.ContainerInsights_DISABLED,
	})
	return awsecs.NewFargateService(r.Stack, str("BinaryService"), &awsecs.FargateServiceProps{
		Cluster:           cluster,
		TaskDefinition:    task,
		DesiredCount:      jsii.Number(1),
		MinHealthyPercent: jsii.Number(0),
		MaxHealthyPercent: jsii.Number(100),
		AssignPublicIp:    jsii.Bool(true),
		SecurityGroups:    &[]awsec2.ISecurityGroup{group},
		// It would start a second task beside the first.
		AvailabilityZoneRebalancing: awsecs.AvailabilityZoneRebalancing_DISABLED,
		CircuitBreaker:              &awsecs.DeploymentCircuitBreaker{Rollback: jsii.Bool(true)},
		// The task needs time to start before its health counts.
		HealthCheckGracePeriod: awscdk.Duration_Seconds(jsii.Number(60)),
	})
}

func (r *relay) newBalancer(vpc awsec2.IVpc, group awsec2.ISecurityGroup, service awsecs.FargateService) {
	balancer := elb.NewApplicationLoadBalancer(r.Stack, str("BinaryBalancer"), &elb.ApplicationLoadBalancerProps{
		Vpc:            vpc,
		InternetFacing: jsii.Bool(true),
		SecurityGroup:  group,
		// More than the 30 s between two pings of the front, less than the 60 s after which
		// it closes a connection that the balancer has kept for the next request.
		IdleTimeout:             awscdk.Duration_Seconds(jsii.Number(50)),
		DropInvalidHeaderFields: jsii.Bool(true),
	})
	certificate := elb.ListenerCertificate_FromCertificateManager(
		r.certificateOf("BinaryCertificate", r.settings.binaryDomain, r.settings.binaryCertificateARN))
	listen := func(id string, port, taskPort float64) elb.ApplicationTargetGroup {
		targets := elb.NewApplicationTargetGroup(r.Stack, str(id+"Targets"), &elb.ApplicationTargetGroupProps{
			Vpc:        vpc,
			Port:       jsii.Number(taskPort),
			Protocol:   elb.ApplicationProtocol_HTTP,
			TargetType: elb.TargetType_IP,
			Targets: &[]elb.IApplicationLoadBalancerTarget{service.LoadBalancerTarget(&awsecs.LoadBalancerTargetOptions{
				ContainerName: str("blindpost"), ContainerPort: jsii.Number(taskPort),
			})},
			// The task closes its connections itself.
			DeregistrationDelay: awscdk.Duration_Seconds(jsii.Number(15)),
			HealthCheck: &elb.HealthCheck{
				Path: str("/readyz"), Port: str(strconv.Itoa(taskClientPort)),
				Interval: awscdk.Duration_Seconds(jsii.Number(15)), HealthyThresholdCount: jsii.Number(2),
			},
		})
		elb.NewApplicationListener(r.Stack, str(id+"Listener"), &elb.ApplicationListenerProps{
			LoadBalancer: balancer,
			Port:         jsii.Number(port),
			Protocol:     elb.ApplicationProtocol_HTTPS,
			SslPolicy:    elb.SslPolicy_TLS13_RES,
			Certificates: &[]elb.IListenerCertificate{certificate},
			Open:         jsii.Bool(false), // the security group decides
			DefaultTargetGroups: &[]elb.IApplicationTargetGroup{
				targets,
			},
		})
		return targets
	}
	r.binary.clients = listen("BinaryClient", clientPort, taskClientPort)
	listen("BinaryCallback", callbackPort, taskCallbackPort)
	r.newRecords("Binary", r.settings.binaryDomain, awsroute53targets.NewLoadBalancerTarget(balancer, nil), false)
	r.output("BinaryTarget", "what a CNAME of the binary domain has to name", *balancer.LoadBalancerDnsName())
}

// binaryTold are the settings of the front. The functions enforce all limits; those
// here bound what the front reads.
func (r *relay) binaryTold() map[string]string {
	told := map[string]string{
		declared.Listen.Name:            ":" + strconv.Itoa(taskClientPort),
		declared.BehindProxy.Name:       binaryNetwork,
		declared.MetricsListen.Name:     "off",
		declared.Lambda.Name:            fmt.Sprintf("https://lambda.%s.%s", *r.Region(), *r.UrlSuffix()),
		declared.LambdaConnect.Name:     *r.functions["connect"].FunctionName(),
		declared.LambdaMessage.Name:     *r.functions["message"].FunctionName(),
		declared.LambdaDisconnect.Name:  *r.functions["disconnect"].FunctionName(),
		declared.CallbackListen.Name:    ":" + strconv.Itoa(taskCallbackPort),
		declared.CallbackURL.Name:       r.settings.binaryCallbackURL(),
		declared.CallbackSecretARN.Name: *r.frontSecret.SecretArn(),
	}
	chosen := r.settings.values.Told(declared.Binary)
	for _, n := range []declared.Named{declared.LogLevel, declared.MaxFrame, declared.MaxLiveFrame} {
		if r.settings.values.IsSet(n) {
			told[n.It().Name] = chosen[n.It().Name]
		}
	}
	return told
}

// invoked are the functions that a front calls.
var invoked = []string{"connect", "message", "disconnect"}

// binaryPermissions let the front call the functions in invoked, and no other.
func (r *relay) binaryPermissions() []permission {
	var arns []string
	for _, name := range invoked {
		arns = append(arns, *r.functions[name].FunctionArn())
	}
	return []permission{
		{[]string{"lambda:InvokeFunction"}, arns},
		{[]string{"secretsmanager:GetSecretValue"}, []string{*r.frontSecret.SecretArn()}},
	}
}

// startPermissions are what ECS needs to start the task: its image and its log.
func startPermissions(image awsecrassets.DockerImageAsset, log string) []permission {
	return []permission{
		{[]string{"ecr:GetAuthorizationToken"}, []string{"*"}}, // belongs to no repository
		{[]string{"ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"}, []string{*image.Repository().RepositoryArn()}},
		{[]string{"logs:CreateLogStream", "logs:PutLogEvents"}, []string{log}},
	}
}

func (r *relay) newBinaryRole(id, what string, p []permission) awsiam.Role {
	return awsiam.NewRole(r.Stack, &id, &awsiam.RoleProps{
		Description:    str("Blindpost: " + what),
		AssumedBy:      awsiam.NewServicePrincipal(str("ecs-tasks.amazonaws.com"), nil),
		InlinePolicies: &map[string]awsiam.PolicyDocument{"permissions": document(p)},
	})
}
