//go:build cdk

package main

import (
	"strings"
	"testing"
)

func TestBinaryTask(t *testing.T) {
	tm := synth(t, "everything", everything).template
	task := tm.get(t, "BinaryTask", "AWS::ECS::TaskDefinition")
	task.want(t, map[string]string{
		"Cpu": "512", "Memory": "1024", "NetworkMode": "awsvpc", "RequiresCompatibilities": `["FARGATE"]`,
		"RuntimePlatform.CpuArchitecture": "ARM64", "RuntimePlatform.OperatingSystemFamily": "LINUX",
		"TaskRoleArn": "${BinaryRole.Arn}", "ExecutionRoleArn": "${BinaryStartRole.Arn}",
		"ContainerDefinitions.1":                                         "",
		"ContainerDefinitions.0.ReadonlyRootFilesystem":                  "true",
		"ContainerDefinitions.0.Privileged":                              "",
		"ContainerDefinitions.0.User":                                    "", // the image says 65532
		"ContainerDefinitions.0.Secrets":                                 "",
		"ContainerDefinitions.0.PortMappings.0.ContainerPort":            "8080",
		"ContainerDefinitions.0.PortMappings.1.ContainerPort":            "8081",
		"ContainerDefinitions.0.LogConfiguration.Options.awslogs-group":  "${BinaryLog}",
		"ContainerDefinitions.0.LogConfiguration.Options.awslogs-region": "${AWS::Region}",
		"ContainerDefinitions.0.StopTimeout":                             "60",
	})
	tm.get(t, "BinaryLog", "AWS::Logs::LogGroup").want(t, map[string]string{"RetentionInDays": "30"})
	synth(t, "binary", fronts["binary"]).template.get(t, "BinaryTask", "AWS::ECS::TaskDefinition").want(t, map[string]string{"Cpu": "256", "Memory": "512"})
}

// Never two at a time: the functions reach the task by one address.
func TestBinaryService(t *testing.T) {
	tm := synth(t, "everything", everything).template
	service := tm.get(t, "BinaryService", "AWS::ECS::Service")
	service.want(t, map[string]string{
		"DesiredCount": "1", "LaunchType": "FARGATE",
		"DeploymentConfiguration.MinimumHealthyPercent":             "0",
		"DeploymentConfiguration.MaximumPercent":                    "100",
		"NetworkConfiguration.AwsvpcConfiguration.AssignPublicIp":   "ENABLED",
		"NetworkConfiguration.AwsvpcConfiguration.SecurityGroups.0": "${BinaryTaskGroup.GroupId}",
		"NetworkConfiguration.AwsvpcConfiguration.SecurityGroups.1": "",
		"LoadBalancers.0.ContainerPort":                             "8080",
		"LoadBalancers.1.ContainerPort":                             "8081",
		"DeploymentConfiguration.DeploymentCircuitBreaker.Enable":   "true",
		"DeploymentConfiguration.DeploymentCircuitBreaker.Rollback": "true",
	})
	if d := flat(list(service.DependsOn)); !strings.Contains(d, "BinaryClientListener") || !strings.Contains(d, "BinaryCallbackListener") {
		t.Errorf("the service can be there before its listeners: it depends on %s", d)
	}
	if n := len(tm.ofType("AWS::ApplicationAutoScaling::ScalableTarget")); n != 0 {
		t.Error("a second task would not be reached")
	}
}

func TestBinaryBalancer(t *testing.T) {
	tm := synth(t, "everything", everything).template
	tm.get(t, "BinaryBalancer", "AWS::ElasticLoadBalancingV2::LoadBalancer").want(t, map[string]string{
		"Scheme": "internet-facing", "Type": "application", "SecurityGroups": `[{"Fn::GetAtt":["` + longID(t, tm, "BinaryBalancerGroup") + `","GroupId"]}]`,
	})
	attributes := tm.get(t, "BinaryBalancer", "AWS::ElasticLoadBalancingV2::LoadBalancer").at("LoadBalancerAttributes")
	for _, a := range []string{`{"Key":"idle_timeout.timeout_seconds","Value":"180"}`, `{"Key":"routing.http.drop_invalid_header_fields.enabled","Value":"true"}`} {
		if !strings.Contains(attributes, a) {
			t.Errorf("%s is missing in %s", a, attributes)
		}
	}
	for id, want := range map[string][2]string{"BinaryClient": {"443", "8080"}, "BinaryCallback": {"8443", "8081"}} {
		tm.get(t, id+"Listener", "AWS::ElasticLoadBalancingV2::Listener").want(t, map[string]string{
			"Port": want[0], "Protocol": "HTTPS", "DefaultActions.0.TargetGroupArn": "${" + id + "Targets}", "DefaultActions.0.Type": "forward",
			"Certificates.0.CertificateArn": "arn:aws:acm:eu-central-1:123456789012:certificate/4e5f-6a7b",
			"SslPolicy":                     "ELBSecurityPolicy-TLS13-1-2-Res-2021-06",
		})
		tm.get(t, id+"Targets", "AWS::ElasticLoadBalancingV2::TargetGroup").want(t, map[string]string{
			"Port": want[1], "Protocol": "HTTP", "TargetType": "ip", "HealthCheckPath": "/readyz", "HealthCheckPort": "8080",
		})
	}
	tm.get(t, "BinaryRecord", "AWS::Route53::RecordSet").want(t, map[string]string{"Name": "frames.example.org.", "Type": "A"})
	synth(t, "binary", fronts["binary"]).template.get(t, "BinaryCertificate", "AWS::CertificateManager::Certificate").want(t, map[string]string{
		"DomainName": "frames.example.org", "ValidationMethod": "DNS",
	})
}

// Who may speak to whom: nothing reaches the task but by the load balancer.
func TestBinaryNetwork(t *testing.T) {
	tm := synth(t, "everything", everything).template
	var rules []string
	for _, id := range []string{"BinaryBalancerGroup", "BinaryTaskGroup"} {
		group := tm.get(t, id, "AWS::EC2::SecurityGroup")
		for direction, word := range map[string]string{"SecurityGroupIngress": " from ", "SecurityGroupEgress": " to "} {
			for _, v := range list(group.value(direction)) {
				if v == nil {
					continue
				}
				r := resource{Properties: v.(map[string]any)}
				rules = append(rules, id+word+r.at("CidrIp")+" "+r.at("IpProtocol")+" "+r.at("FromPort")+"-"+r.at("ToPort"))
			}
		}
	}
	for kind, word := range map[string]string{"AWS::EC2::SecurityGroupIngress": " from ", "AWS::EC2::SecurityGroupEgress": " to "} {
		for _, r := range tm.ofType(kind) {
			id := strings.TrimSuffix(strings.TrimPrefix(r.at("GroupId"), "${"), ".GroupId}")
			other := r.at("SourceSecurityGroupId") + r.at("DestinationSecurityGroupId")
			rules = append(rules, id+word+strings.TrimSuffix(strings.TrimPrefix(other, "${"), ".GroupId}")+" "+r.at("IpProtocol")+" "+r.at("FromPort")+"-"+r.at("ToPort"))
		}
	}
	same(t, "rules", rules, []string{
		"BinaryBalancerGroup from 0.0.0.0/0 tcp 443-443", "BinaryBalancerGroup from 0.0.0.0/0 tcp 8443-8443",
		"BinaryBalancerGroup to BinaryTaskGroup tcp 8080-8080", "BinaryBalancerGroup to BinaryTaskGroup tcp 8081-8081",
		"BinaryTaskGroup from BinaryBalancerGroup tcp 8080-8080", "BinaryTaskGroup from BinaryBalancerGroup tcp 8081-8081",
		"BinaryTaskGroup to 0.0.0.0/0 tcp 443-443",
	})
	subnets := tm.ofType("AWS::EC2::Subnet")
	if len(subnets) != 2 {
		t.Errorf("there are %d subnets, and a load balancer wants 2", len(subnets))
	}
	tm.get(t, "BinaryNetwork", "AWS::EC2::VPC").want(t, map[string]string{"CidrBlock": binaryNetwork})
}

// Without the key there is nothing of it.
func TestNoBinaryFront(t *testing.T) {
	for id, r := range synth(t, "plain", nil).template.resources {
		for _, service := range []string{"AWS::ECS::", "AWS::EC2::", "AWS::ElasticLoadBalancingV2::"} {
			if strings.HasPrefix(r.Type, service) {
				t.Errorf("there is a %s %s", r.Type, id)
			}
		}
	}
}
