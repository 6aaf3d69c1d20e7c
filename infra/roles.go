//go:build cdk

package main

import (
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
)

// permission allows actions on resources. They are written out, because the
// grant methods of the CDK give more than is needed.
type permission struct {
	actions   []string
	resources []string
}

var (
	tableRead  = []string{"dynamodb:GetItem", "dynamodb:Query"}
	tableWrite = []string{"dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem", "dynamodb:ConditionCheckItem"}
	// receive is what Lambda needs to read a queue on behalf of a function.
	receive = []string{"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes"}
)

// permissions is what one function may do, beyond writing its own log.
func (r *relay) permissions(name string) []permission {
	table, ingress, jobs := *r.table.TableArn(), *r.queues.ingress.QueueArn(), *r.queues.jobs.QueueArn()
	all := append(append([]string{}, tableRead...), tableWrite...)
	switch name {
	case "connect":
		// Agentknock authenticates by the header of the upgrade, and a device claims its
		// name, replaces its connection and deletes itself here.
		p := []permission{
			{all, []string{table}},
			{[]string{"execute-api:ManageConnections"}, r.connections("DELETE")},
			{[]string{"sqs:SendMessage"}, []string{ingress, jobs}},
		}
		if r.origin != nil {
			p = append(p, permission{[]string{"secretsmanager:GetSecretValue"}, []string{*r.origin.SecretArn()}})
		}
		return append(p, r.frontPermissions()...)
	case "message":
		p := []permission{
			{all, []string{table}},
			// It asks for a connection before it gives it up: an older one of an Agentknock
			// client, one of too many Aelos viewers.
			{[]string{"execute-api:ManageConnections"}, r.connections("POST", "DELETE", "GET")},
			{receive, []string{ingress}},
			{[]string{"sqs:SendMessage"}, []string{ingress, jobs}},
		}
		if s := r.settings.aelosSecretARN; s != "" {
			// A token of Aelos is in the first frame.
			p = append(p, permission{[]string{"secretsmanager:GetSecretValue"}, []string{s}})
		}
		return append(p, r.frontPermissions()...)
	case "disconnect":
		return []permission{{[]string{"sqs:SendMessage"}, []string{ingress}}}
	default: // sweeper
		p := []permission{
			{all, []string{table}},
			{[]string{"execute-api:ManageConnections"}, r.connections("POST", "DELETE", "GET")},
			{receive, []string{jobs}},
			{[]string{"sqs:SendMessage"}, []string{ingress, jobs}},
		}
		return append(append(p, r.pushPermissions()...), r.frontPermissions()...)
	}
}

// frontPermissions let a function post to the connections of binary fronts.
func (r *relay) frontPermissions() []permission {
	if r.frontSecret == nil {
		return nil
	}
	return []permission{{[]string{"secretsmanager:GetSecretValue"}, []string{*r.frontSecret.SecretArn()}}}
}

// pushPermissions is for one platform application or two.
func (r *relay) pushPermissions() []permission {
	var apps, endpoints []string
	for _, app := range []string{r.settings.snsIOS, r.settings.snsAndroid} {
		if app != "" {
			apps = append(apps, app)
			endpoints = append(endpoints, strings.Replace(app, ":app/", ":endpoint/", 1)+"/*")
		}
	}
	if apps == nil {
		return nil
	}
	return []permission{
		{[]string{"sns:CreatePlatformEndpoint"}, apps},
		{[]string{"sns:Publish", "sns:GetEndpointAttributes", "sns:SetEndpointAttributes", "sns:DeleteEndpoint"}, endpoints},
	}
}

// connections are the ARNs of all connections of the API, for these methods.
func (r *relay) connections(methods ...string) []string {
	var arns []string
	for _, m := range methods {
		arns = append(arns, r.arn("execute-api", *r.api.ApiId()+"/"+stageName+"/"+m+"/@connections/*"))
	}
	return arns
}

// newRole puts the policy into the role itself: so it exists before the role is used,
// and the CDK attaches nothing later.
func (r *relay) newRole(name, id string, log awslogs.LogGroup) awsiam.Role {
	p := append(r.permissions(name), permission{
		[]string{"logs:CreateLogStream", "logs:PutLogEvents"}, []string{*log.LogGroupArn()},
	})
	return awsiam.NewRole(r.Stack, str(id+"Role"), &awsiam.RoleProps{
		Description:    str("Blindpost: functions/" + name),
		AssumedBy:      awsiam.NewServicePrincipal(str("lambda.amazonaws.com"), nil),
		InlinePolicies: &map[string]awsiam.PolicyDocument{"permissions": document(p)},
	})
}

func document(permissions []permission) awsiam.PolicyDocument {
	var statements []awsiam.PolicyStatement
	for _, p := range permissions {
		statements = append(statements, awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
			Actions:   strs(p.actions),
			Resources: strs(p.resources),
		}))
	}
	return awsiam.NewPolicyDocument(&awsiam.PolicyDocumentProps{Statements: &statements})
}

func strs(in []string) *[]*string {
	out := make([]*string, len(in))
	for i := range in {
		out[i] = &in[i]
	}
	return &out
}
