// The HTTP endpoints take small JSON objects by POST. Anything else is answered
// here, before it costs a call.
function handler(event) {
  var request = event.request;
  if (request.method !== 'POST') {
    return refuse(405, 'Method Not Allowed', 'METHOD_NOT_ALLOWED', 'This path takes POST.', { allow: { value: 'POST' } });
  }
  var length = request.headers['content-length'];
  if (length && !(Number(length.value) <= __LIMIT__)) {
    return refuse(413, 'Payload Too Large', 'PAYLOAD_TOO_LARGE', 'The body is too large.', {});
  }
  return request;
}

function refuse(status, description, code, message, headers) {
  headers['content-type'] = { value: 'application/json' };
  return {
    statusCode: status,
    statusDescription: description,
    headers: headers,
    body: JSON.stringify({ error: code, message: message })
  };
}
