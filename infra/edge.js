// API Gateway refuses a WebSocket at any path but that of its stage. So the path
// travels as a query parameter, and a client cannot set that parameter itself.
function handler(event) {
  var request = event.request;
  for (var name in request.querystring) {
    if (isOurs(name)) {
      delete request.querystring[name];
    }
  }
  request.querystring['__PARAMETER__'] = { value: encodeURIComponent(request.uri) };
  request.uri = '/__STAGE__';
  return request;
}

// The origin decodes names, so %70 is p.
function isOurs(name) {
  try {
    return decodeURIComponent(name.replace(/\+/g, ' ')) === '__PARAMETER__';
  } catch (e) {
    return true; // no name at all
  }
}
