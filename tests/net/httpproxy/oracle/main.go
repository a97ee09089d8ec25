// Says which proxy Go's httpproxy chooses: one case in a line of JSON in, one answer in a line out.
package main

import (
	"bufio"
	"encoding/json"
	"net"
	"net/url"
	"os"

	"golang.org/x/net/http/httpproxy"
)

type asked struct {
	HTTPProxy, HTTPSProxy, NoProxy string
	CGI                            bool
	Scheme, Host, Port             string
}

type answer struct {
	Scheme, Host, Port, User, Password string
	HasProxy, HasUser, Failed          bool
}

func choose(a asked) answer {
	config := httpproxy.Config{HTTPProxy: a.HTTPProxy, HTTPSProxy: a.HTTPSProxy, NoProxy: a.NoProxy, CGI: a.CGI}
	chosen, err := config.ProxyFunc()(&url.URL{Scheme: a.Scheme, Host: net.JoinHostPort(a.Host, a.Port)})
	if err != nil {
		return answer{Failed: true}
	}
	if chosen == nil {
		return answer{}
	}
	password, _ := chosen.User.Password()
	return answer{
		HasProxy: true, Scheme: chosen.Scheme, Host: chosen.Hostname(), Port: chosen.Port(),
		HasUser: chosen.User != nil, User: chosen.User.Username(), Password: password,
	}
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var a asked
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			panic(err)
		}
		if err := out.Encode(choose(a)); err != nil {
			panic(err)
		}
	}
}
